#include "engine/report/explain.h"

#include <einrel/program.h>

#include "api/border.h"
#include "api/plan_options.h"
#include "api/program_data.h"
#include "engine/plan_memory.h"
#include "engine/report/plan_text.h"

namespace einrel::api {

std::string Program::explain(const ExplainOptions& options) const {
  return at_border([&] {
    const SourceText& source = data_->given.source;
    const Compiled& compiled = require_extents(data_->declared, source, data_->inputs, "how it runs");
    const PlanRequest request = request_of({options.sites, options.cost, options.machine, options.memory});
    const bool is_planned =
        options.sites || !options.planners.empty() || options.cost || options.machine || options.memory;
    if (!is_planned) return explain_text(compiled, source, Detail::folded);
    std::vector<std::string> planners = options.planners;
    if (planners.empty()) planners = {"eindecomp"};
    for (const std::string& planner : planners) check_planner(planner);
    const PlanComparison comparison = compare_plans(compiled, std::nullopt, planners, request);
    check_fits(compiled, comparison.plans.front(), request, source);
    return plans_text(compiled, comparison, request, source, Detail::folded);
  });
}

}  // namespace einrel::api
