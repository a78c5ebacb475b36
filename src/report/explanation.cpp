#include "report/explanation.h"

#include <utility>
#include <variant>

#include "run/forecast_memory.h"
#include "run/forecast_seconds.h"

namespace einrel {
namespace {

/// The plan of a program that runs by itself, with what its tasks hold.
void add_own_plan(Explanation& explained, const Chosen& chosen, const LayoutBindings& layouts) {
  const Compiled& compiled = *explained.compiled;
  explained.request = plan_request({.sites = 1}, Job{});
  SitePeak peak = forecast_memory(chosen.tasks, layouts);  // which names the vertex where that is too much to count
  PlanReport report = report_of(compiled, whole_plan(compiled.graph), explained.request);
  report.peak = std::move(peak);
  report.seconds = compiled.seconds;
  explained.comparison.plans.push_back(std::move(report));
}

void add_plan(Explanation& explained, const ByPlan& chosen) {
  explained.request = chosen.request;
  explained.comparison = {{chosen.plan}, chosen.refused};
  explained.comparison.plans.insert(explained.comparison.plans.end(), chosen.others.begin(), chosen.others.end());
}

}  // namespace

Explanation explanation_of(const Compiled& given, const Chosen& chosen, const LayoutBindings& layouts) {
  const Compiled& compiled = chosen.program(given);
  Explanation explained{.program = compiled.name, .compiled = &compiled};
  if (std::holds_alternative<ByItself>(chosen.how)) add_own_plan(explained, chosen, layouts);
  if (const auto* const by_plan = std::get_if<ByPlan>(&chosen.how)) add_plan(explained, *by_plan);
  if (const auto* const relations = std::get_if<ByRelations>(&chosen.how)) explained.algebra = relations->facts;
  if (chosen.tasks.graph.tasks.empty()) return explained;
  explained.tasks = chosen.tasks.graph.tasks.size();
  SecondsForecast forecast(chosen.tasks, explained.request.machine, chosen.threads);
  explained.calls = kernel_calls(compiled.graph, chosen.tasks, layouts,
                                 [&](std::size_t task, const KernelCall& call) { forecast.add(task, call); });
  // What goes to disk and back has no model.
  if (!explained.request.machine.kernel_times.empty() && !std::holds_alternative<Spilling>(chosen.memory))
    explained.seconds = forecast.seconds(is_limited(chosen.memory));
  if (explained.algebra) explained.peak = forecast_memory(chosen.tasks, layouts).bytes;
  return explained;
}

Explanation explanation_of(const std::string& name, const AnyProgram& program, const Chosen& chosen,
                           const LayoutBindings& layouts) {
  if (const auto* const compiled = std::get_if<Compiled>(&program)) return explanation_of(*compiled, chosen, layouts);
  Explanation explained{.program = name, .algebra = std::get<ByRelations>(chosen.how).facts};
  if (!chosen.tasks.graph.tasks.empty()) explained.peak = forecast_memory(chosen.tasks, layouts).bytes;
  return explained;
}

void add_algebra(Explanation& explained) {
  explained.algebra = facts_of(algebra_of(explained.graph(), explained.plan().plan));
}

}  // namespace einrel
