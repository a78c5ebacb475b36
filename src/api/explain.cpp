#include "report/explain.h"

#include <einrel/program.h>

#include <set>
#include <utility>
#include <vector>

#include "api/border.h"
#include "api/plan_options.h"
#include "api/program_data.h"
#include "export/jax.h"
#include "export/torch.h"
#include "report/report_json.h"
#include "run/compare_plans.h"
#include "viz/plan_html.h"

namespace einrel::api {
namespace {

/// What `tell` says of the program, as it would run with these options.
template <class Tell>
std::string told(const Compiled& compiled, const SourceText& source, const ExplainOptions& options, Tell&& tell) {
  const Chosen chosen = choose(compiled, request_of(options), source, {});
  return tell(explanation_of(compiled, chosen));
}

ExplainOptions on_a_mesh(ExplainOptions options) {
  options.spmd = true;
  options.sites = options.sites.value_or(1);
  return options;
}

}  // namespace

std::string Program::explain(const ExplainOptions& options) const {
  return at_border([&] {
    const SourceText& source = data_->given.source;
    const Compiled& compiled = require_extents(data_->declared, source, data_->inputs, "how it runs");
    return as_options(told(compiled, source, options, [&](const Explanation& explained) {
      return explanation_text(explained, source, Detail::folded);
    }));
  });
}

std::vector<std::string> Program::labels() const {
  return at_border([&] {
    const std::set<std::string> labels =
        labels_of_plans(require_extents(data_->declared, data_->given.source, data_->inputs, "its labels").graph);
    return std::vector<std::string>(labels.begin(), labels.end());
  });
}

std::string Program::plan(const ExplainOptions& options) const {
  return at_border([&] {
    const SourceText& source = data_->given.source;
    return told(require_extents(data_->declared, source, data_->inputs, "a plan"), source, options, explanation_json);
  });
}

Placements Program::placements(const ExplainOptions& options) const {
  return at_border([&] {
    const SourceText& source = data_->given.source;
    const Compiled& compiled = require_extents(data_->declared, source, data_->inputs, "where its inputs lie");
    const RunRequest asked = request_of(options);
    return placements_after(choose(compiled, asked, source, {}), compiled, asked);
  });
}

std::string Program::jax(const ExplainOptions& options) const {
  return at_border([&] {
    return told(require_extents(data_->declared, data_->given.source, data_->inputs, "a program for JAX"),
                data_->given.source, on_a_mesh(options),
                [](const Explanation& explained) { return jax_source(*explained.compiled, explained.plan()); });
  });
}

std::string Program::torch(const ExplainOptions& options) const {
  return at_border([&] {
    return told(require_extents(data_->declared, data_->given.source, data_->inputs, "a program for PyTorch"),
                data_->given.source, on_a_mesh(options),
                [](const Explanation& explained) { return torch_source(*explained.compiled, explained.plan()); });
  });
}

std::string Program::html(const ExplainOptions& options) const {
  return at_border([&] { return plans_html(plan(options)); });
}

}  // namespace einrel::api
