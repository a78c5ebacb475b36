#include "engine/report/explain.h"

#include <einrel/program.h>

#include "api/border.h"
#include "api/plan_options.h"
#include "api/program_data.h"
#include "engine/plan_memory.h"
#include "engine/report/plan_text.h"
#include "engine/report/report_json.h"
#include "plan/default_planner.h"
#include "viz/plan_html.h"

namespace einrel::api {
namespace {

/// Plans that fit, and what they were made for.
struct Plans {
  PlanRequest request;
  PlanComparison comparison;
};

Plans plans_for(const Compiled& compiled, const SourceText& source, const ExplainOptions& options) {
  const PlanRequest request = plan_request(request_of(options));
  std::vector<std::string> planners = options.planners;
  if (planners.empty()) planners = {default_planner};
  for (const std::string& planner : planners) check_planner(planner);
  PlanComparison comparison = compare_plans(compiled, std::nullopt, planners, request);
  check_fits(compiled, comparison.plans.front(), request, source);
  return {request, std::move(comparison)};
}

}  // namespace

std::string Program::explain(const ExplainOptions& options) const {
  return at_border([&] {
    const SourceText& source = data_->given.source;
    const Compiled& compiled = require_extents(data_->declared, source, data_->inputs, "how it runs");
    const bool is_planned =
        options.sites || !options.planners.empty() || options.cost || options.machine || options.memory;
    if (!is_planned) return as_options(explain_text(compiled, source, Detail::folded));
    const Plans plans = plans_for(compiled, source, options);
    return as_options(plans_text(compiled, plans.comparison, plans.request, source, Detail::folded));
  });
}

std::string Program::plan(const ExplainOptions& options) const {
  return at_border([&] {
    const SourceText& source = data_->given.source;
    const Compiled& compiled = require_extents(data_->declared, source, data_->inputs, "a plan");
    const Plans plans = plans_for(compiled, source, options);
    return plans_json(compiled, plans.comparison, plans.request);
  });
}

std::string Program::html(const ExplainOptions& options) const {
  return at_border([&] { return plans_html(plan(options)); });
}

}  // namespace einrel::api
