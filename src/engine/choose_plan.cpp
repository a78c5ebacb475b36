#include "engine/choose_plan.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <utility>
#include <variant>

#include "base/text.h"
#include "base/unnamed_file.h"
#include "einsum/vertex_facts.h"
#include "engine/bookkeeping.h"
#include "engine/memory.h"
#include "engine/out_of_core.h"
#include "engine/plan_memory.h"
#include "exec/read_late.h"
#include "exec/starpu/session.h"

namespace einrel {
namespace {

/// The plan that was given, or the planner's.
ChosenPlan chosen_by_name(const Compiled& compiled, RunRequest& request, bool within_limit) {
  ChosenPlan chosen;
  chosen.threads = request.threads;
  if (request.given) {
    request.plan.sites = request.given->sites;
    chosen.plan = report_of(compiled, std::move(*request.given), request.plan);
  } else {
    PlanRequest asked = request.plan;
    if (!within_limit) asked.memory.reset();
    chosen.plan = plan_with(compiled, request.planner, asked);
  }
  chosen.request = request.plan;
  return chosen;
}

/// The tasks of a plan that stays in memory; within a limit, inputs are read as late as they can be.
void make_tasks(const Compiled& compiled, ChosenPlan& chosen, const Job& job) {
  chosen.tasks = tasks_of(compiled, chosen.plan.plan, job);
  if (chosen.request.memory) read_late(chosen.tasks.graph, std::numeric_limits<std::int64_t>::max());
}

/// What a rank's limit leaves for arrays beside a plan's tasks.
std::int64_t left_beside(const ChosenPlan& chosen) {
  return left_for_arrays(*chosen.request.memory, bookkeeping_by_starpu(chosen.tasks));
}

/// Asks the planner for a plan that leaves room for the bookkeeping of its tasks, where the one chosen does not.
void make_room_for_bookkeeping(const Compiled& compiled, const std::string& planner, ChosenPlan& chosen,
                               const Job& job) {
  constexpr int most_attempts = 3;
  PlanRequest less = chosen.request;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    less.memory = left_beside(chosen);
    if (*less.memory == 0 || chosen.plan.peak.bytes <= *less.memory) return;
    std::variant<PlanReport, PlanRefusal> next = try_plan(compiled, planner, less);
    if (std::holds_alternative<PlanRefusal>(next)) return;
    chosen.plan = std::get<PlanReport>(std::move(next));
    make_tasks(compiled, chosen, job);
  }
}

/// Of a plan whose chunks stay in memory.
void check_rank_fits(const Compiled& compiled, const ChosenPlan& chosen, const SourceText& source) {
  const std::optional<std::int64_t>& limit = chosen.request.memory;
  if (!limit) return;
  check_fits(compiled, chosen.plan, chosen.request, source);
  PlanRequest beside = chosen.request;
  beside.memory = left_beside(chosen);
  if (*beside.memory == 0) check_tasks_fit(compiled, chosen.tasks, {*limit, chosen.threads, true});
  check_fits(compiled, chosen.plan, beside, source,
             fmt::format("\n  beside it, {} of {}", bookkeeping_text(chosen.tasks, bookkeeping_by_starpu(chosen.tasks)),
                         bytes_text(*limit)));
}

ChosenPlan for_rank(const Compiled& compiled, RunRequest request, const SourceText& source, const Job& job) {
  const std::optional<std::int64_t> limit = request.plan.memory;
  const bool may_spill = request.may_spill && limit;
  const bool is_given = request.given.has_value();
  ChosenPlan chosen = chosen_by_name(compiled, request, !may_spill);
  make_tasks(compiled, chosen, job);
  chosen.spills = may_spill && chosen.plan.peak.bytes > chunk_memory(left_beside(chosen), request.threads);
  if (!chosen.spills) {
    if (limit && !is_given) make_room_for_bookkeeping(compiled, request.planner, chosen, job);
    check_rank_fits(compiled, chosen, source);
    return chosen;
  }
  const TaskMemory memory{*limit, request.threads, true};
  if (is_given) {
    chosen.tasks = tasks_within(compiled, chosen.plan.plan, memory, job);
    check_tasks_fit(compiled, chosen.tasks, memory);
  } else {
    OutOfCorePlan fine = finer_out_of_core(compiled, chosen.plan, request.plan, memory, job);
    chosen.plan = std::move(fine.plan);
    chosen.tasks = std::move(fine.tasks);
  }
  return chosen;
}

/// The least limit within which all fits, one task after the other.
std::int64_t limit_in_order(const PlannedTasks& tasks, std::size_t threads) {
  const std::int64_t live = most_live_bytes(tasks.graph);
  std::int64_t too_little = 0;
  std::int64_t enough = 1;
  while (chunk_memory(enough, threads) < live) too_little = std::exchange(enough, 2 * enough);
  while (enough - too_little > 1) {
    const std::int64_t middle = too_little + (enough - too_little) / 2;
    (chunk_memory(middle, threads) < live ? too_little : enough) = middle;
  }
  return enough + most_of(bookkeeping_in_order(tasks));
}

ChosenPlan for_process(const Compiled& compiled, RunRequest request, const Job& job) {
  const std::optional<std::int64_t> limit = request.plan.memory;
  const bool is_given = request.given.has_value();
  ChosenPlan chosen = chosen_by_name(compiled, request, false);
  make_tasks(compiled, chosen, job);
  if (!limit) return chosen;
  const std::int64_t left = left_for_arrays(*limit, bookkeeping_in_order(chosen.tasks));
  chosen.in_order = left > 0 && most_live_bytes(chosen.tasks.graph) <= chunk_memory(left, request.threads);
  if (chosen.in_order) return chosen;
  const std::int64_t in_order = limit_in_order(chosen.tasks, request.threads);
  if (left == 0) throw too_little(compiled, chosen.tasks, {*limit, 1}, in_order);  // nor does what has more tasks fit
  if (is_given) {
    chosen.tasks = tasks_within(compiled, chosen.plan.plan, {*limit, request.threads}, job);
    chosen.threads = threads_that_fit(chosen.tasks, {*limit, request.threads});
    check_tasks_fit(compiled, chosen.tasks, {*limit, chosen.threads});
    chosen.spills = true;
    return chosen;
  }
  chosen.tasks = {};  // not beside those of finer plans
  OutOfCorePlan fine = plan_out_of_core({compiled, request.planner, request.plan, in_order}, {*limit, request.threads});
  request.plan.sites = fine.plan.plan.sites;
  return {request.plan, std::move(fine.plan), std::move(fine.tasks), true, false, fine.threads};
}

}  // namespace

ChosenPlan choose_plan(const Compiled& compiled, RunRequest request, const SourceText& source, const Job& job) {
  const bool is_given = request.given.has_value();
  const auto start = std::chrono::steady_clock::now();
  ChosenPlan chosen = job.is_started ? for_rank(compiled, std::move(request), source, job)
                                     : for_process(compiled, std::move(request), job);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!is_given) chosen.plan.seconds = seconds;  // cutting for memory and making tasks, too
  return chosen;
}

void check_room(const Compiled& compiled, const ChosenPlan& chosen, const std::function<bool(const Vertex&)>& in_place,
                std::string_view limit) {
  if (chosen.spills) return;
  std::int64_t needed = most_live_bytes(chosen.tasks.graph);
  for (const Vertex& vertex : compiled.graph.vertices) {
    if (!is_input(vertex) || !in_place(vertex)) continue;
    needed -= element_count(vertex.bound) * static_cast<std::int64_t>(size_of(vertex.dtype));
  }
  check_available(needed, fmt::format("running {} by a plan", printable(compiled.name)), limit);
}

PlanResources resources_of(const ChosenPlan& chosen, const std::optional<std::string>& folder,
                           std::function<void(std::exception_ptr)> on_failure) {
  std::optional<std::int64_t> memory;
  if (chosen.spills) memory = left_for_arrays(*chosen.request.memory, bookkeeping_by_starpu(chosen.tasks));
  return {chosen.threads, memory, {folder.value_or(temporary_folder()), std::move(on_failure)}, chosen.in_order};
}

}  // namespace einrel
