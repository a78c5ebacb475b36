#include "engine/report/run_report.h"

#include <variant>

#include "base/text.h"
#include "engine/memory.h"
#include "engine/report/algebra_text.h"
#include "engine/report/explain.h"
#include "engine/report/plan_analysis.h"
#include "engine/report/plan_text.h"
#include "engine/report/report_json.h"

namespace einrel {
namespace {

/// One function for each way to run.
template <class... Functions>
struct Ways : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Ways(Functions...) -> Ways<Functions...>;

}  // namespace

std::string explained_text(const AnyProgram& program, const Chosen& chosen, const SourceText& source) {
  const auto by_itself = [&] { return explain_text(std::get<Compiled>(program), source, Detail::folded); };
  return std::visit(
      Ways{[&](const ByItself&) { return by_itself() + "\n"; },
           [&](const ByPlan& way) {
             return plans_text(std::get<Compiled>(program), {{way.plan}, {}}, way.request, source, Detail::folded);
           },
           [&](const ByRelations& way) {
             const bool is_compiled = std::holds_alternative<Compiled>(program);
             const std::string first = is_compiled ? by_itself() : printable(source.name()) + "\n";
             return first + algebra_text(way.facts) + "\n";
           }},
      chosen.how);
}

std::string analysis_text(const RunOutcome& outcome) {
  return std::visit(Ways{[](const ByItself&) { return std::string(); },
                         [&](const ByPlan& way) {
                           return analysis_text(std::get<Compiled>(outcome.program), way.plan, way.request,
                                                outcome.report);
                         },
                         [&](const ByRelations& way) { return analysis_text(way.facts, way.bytes, outcome.report); }},
                    outcome.chosen.how);
}

std::string run_json(const RunOutcome& outcome) {
  const std::optional<std::int64_t> peak_bytes = peak_resident_bytes();
  return std::visit(Ways{[&](const ByItself&) {
                           return run_json(std::get<Compiled>(outcome.program),
                                           {outcome.chosen.tasks, outcome.report, outcome.summaries, outcome.layouts,
                                            peak_bytes, outcome.files});
                         },
                         [&](const ByPlan& way) {
                           return run_plan_json(std::get<Compiled>(outcome.program), way.plan, way.request,
                                                outcome.report, outcome.summaries, peak_bytes);
                         },
                         [&](const ByRelations& way) {
                           return run_algebra_json(outcome.name, outcome.chosen.tasks, way, outcome.report,
                                                   outcome.summaries, peak_bytes);
                         }},
                    outcome.chosen.how);
}

}  // namespace einrel
