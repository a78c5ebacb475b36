#include "engine/choose_plan.h"

#include "engine/memory.h"
#include "engine/out_of_core.h"
#include "engine/plan_memory.h"

namespace einrel {
namespace {

/// The plan that was given, or the planner's.
ChosenPlan chosen_by_name(const Compiled& compiled, RunRequest& request, bool within_limit) {
  ChosenPlan chosen;
  if (request.given) {
    request.plan.sites = request.given->sites;
    chosen.plan = report_of(compiled, std::move(*request.given), request.plan);
  } else {
    PlanRequest asked = request.plan;
    if (!within_limit) asked.memory.reset();
    chosen.plan = std::move(plan_with(compiled, {request.planner}, asked).front());
  }
  chosen.request = request.plan;
  return chosen;
}

ChosenPlan for_rank(const Compiled& compiled, RunRequest request, const SourceText& source, const Job& job) {
  const std::optional<std::int64_t> limit = request.plan.memory;
  const bool spills = request.may_spill && limit;
  ChosenPlan chosen = chosen_by_name(compiled, request, !spills);
  if (!spills) check_fits(compiled, chosen.plan, request.plan, source);
  chosen.tasks = tasks_of(compiled, chosen.plan.plan, job);
  if (spills) check_tasks_fit(compiled, chosen.tasks, {*limit, request.threads, 1});
  chosen.spills = spills;
  return chosen;
}

}  // namespace

ChosenPlan choose_plan(const Compiled& compiled, RunRequest request, const SourceText& source, const Job& job) {
  if (job.is_started) return for_rank(compiled, std::move(request), source, job);
  const std::optional<std::int64_t> limit = request.plan.memory;
  const bool spills = limit && forecast_memory(compiled).peak_bytes > *limit;
  if (spills && !request.given) {
    OutOfCorePlan fine = plan_out_of_core(compiled, request.planner, request.plan, request.threads, *limit);
    request.plan.sites = fine.plan.plan.sites;
    return {request.plan, std::move(fine.plan), std::move(fine.tasks), true};
  }
  ChosenPlan chosen = chosen_by_name(compiled, request, false);
  chosen.tasks = tasks_of(compiled, chosen.plan.plan, job);
  if (spills) check_tasks_fit(compiled, chosen.tasks, {*limit, request.threads, request.threads});
  chosen.spills = spills;
  return chosen;
}

}  // namespace einrel
