#include "engine/choose_plan.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>
#include <variant>

#include "base/text.h"
#include "base/unnamed_file.h"
#include "engine/bookkeeping.h"
#include "engine/memory.h"
#include "engine/out_of_core.h"
#include "engine/plan_memory.h"
#include "exec/read_late.h"
#include "exec/starpu/session.h"
#include "ia/traffic.h"

namespace einrel {
namespace {

/// The plan that was given, or the planner's.
ChosenPlan chosen_by_name(const Compiled& compiled, RunRequest& request, bool within_limit) {
  ChosenPlan chosen;
  chosen.threads = request.threads;
  chosen.limit = request.plan.memory;
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

/// The least limit within which all fits, one task after the other.
std::int64_t limit_in_order(const PlannedTasks& tasks, std::size_t threads) {
  const std::int64_t live = most_live_bytes(tasks.graph);
  const std::int64_t enough = least_that(0, [&](std::int64_t limit) { return chunk_memory(limit, threads) >= live; });
  return enough + most_of(bookkeeping_in_order(tasks));
}

/// Whether everything fits into a process on its own when one task runs after the other, which is noted. Throws
/// UserError where not even what is kept of the tasks does.
bool runs_in_order(ChosenTasks& chosen) {
  chosen.in_order = fits_in_order(chosen.tasks, *chosen.limit, chosen.threads);
  const Bookkeeping bookkeeping = bookkeeping_in_order(chosen.tasks);
  if (left_for_arrays(*chosen.limit, bookkeeping) > 0) return chosen.in_order;
  throw UserError(fmt::format("--memory {} is too little: {}\n  help: give at least {}", bytes_text(*chosen.limit),
                              bookkeeping_text(chosen.tasks, bookkeeping),  // nor does what has more tasks fit
                              bytes_text(rounded_up(limit_in_order(chosen.tasks, chosen.threads)))));
}

/// Notes that chunks come and go, and how many threads work on them. Throws UserError where a task takes more than
/// there is.
void make_spill(ChosenTasks& chosen, const UncutText& uncut) {
  chosen.threads = threads_that_fit(chosen.tasks, {*chosen.limit, chosen.threads});
  check_tasks_fit(chosen.tasks, {*chosen.limit, chosen.threads}, uncut);
  chosen.spills = true;
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
  if (*beside.memory == 0) check_tasks_fit(chosen.tasks, {*limit, chosen.threads, true}, uncut_labels(compiled));
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
    check_tasks_fit(chosen.tasks, memory, uncut_labels(compiled));
  } else {
    OutOfCorePlan fine = finer_out_of_core(compiled, chosen.plan, request.plan, memory, job);
    chosen.plan = std::move(fine.plan);
    chosen.tasks = std::move(fine.tasks);
  }
  return chosen;
}

ChosenPlan for_process(const Compiled& compiled, RunRequest request, const Job& job) {
  const std::optional<std::int64_t> limit = request.plan.memory;
  const bool is_given = request.given.has_value();
  ChosenPlan chosen = chosen_by_name(compiled, request, false);
  make_tasks(compiled, chosen, job);
  if (!limit || runs_in_order(chosen)) return chosen;
  const TaskMemory memory{*limit, std::min(request.threads, most_session_threads())};
  if (is_given) {
    chosen.threads = memory.threads;
    chosen.tasks = tasks_within(compiled, chosen.plan.plan, memory, job);
    make_spill(chosen, uncut_labels(compiled));
    return chosen;
  }
  const std::int64_t in_order = limit_in_order(chosen.tasks, request.threads);
  Traffic between = std::move(chosen.tasks.traffic);
  chosen.tasks = {};  // not beside those of finer plans
  OutOfCorePlan fine = plan_out_of_core({compiled, request.planner, request.plan, in_order}, memory);
  request.plan.sites = fine.plan.plan.sites;
  // Chunks of the finer plan's sites go to disk and back, but from none of the sites that were asked for to another.
  fine.tasks.traffic = std::move(between);
  return {{std::move(fine.tasks), limit, true, false, fine.threads}, request.plan, std::move(fine.plan)};
}

/// From here on the C library gives large blocks back when they are freed. It would keep what planning and running
/// free, in pieces, beside what they count.
void give_back_at_once() {
  constexpr int least_bytes = 1 << 16;
  mallopt(M_MMAP_THRESHOLD, least_bytes);
}

}  // namespace

bool fits_in_order(const PlannedTasks& tasks, std::int64_t limit, std::size_t threads) {
  const std::int64_t left = left_for_arrays(limit, bookkeeping_in_order(tasks));
  return left > 0 && most_live_bytes(tasks.graph) <= chunk_memory(left, threads);
}

ChosenPlan choose_plan(const Compiled& compiled, RunRequest request, const SourceText& source, const Job& job) {
  if (request.plan.memory) give_back_at_once();
  const bool is_given = request.given.has_value();
  const auto start = std::chrono::steady_clock::now();
  ChosenPlan chosen = job.is_started ? for_rank(compiled, std::move(request), source, job)
                                     : for_process(compiled, std::move(request), job);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!is_given) chosen.plan.seconds = seconds;  // cutting for memory and making tasks, too
  return chosen;
}

ChosenAlgebra choose_algebra(const AlgebraPlan& plan, const AlgebraLimits& limits, const Job& job) {
  if (limits.memory) give_back_at_once();
  ChosenAlgebra chosen{{tasks_of(plan, job), limits.memory, false, false, limits.threads}, facts_of(plan), {}};
  for (const IaId id : nodes_of(plan.ia.store, plan.ia.plan)) chosen.bytes.push_back(bytes_of(plan.ia.store, id));
  if (!limits.memory) return chosen;
  const UncutText cut_by_program = [](std::size_t) {
    return std::string(
        "\n  a .tra program says itself how it is cut: cut its inputs into more parts; a .ein program is cut "
        "more finely for more sites");
  };
  read_late(chosen.tasks.graph, std::numeric_limits<std::int64_t>::max());
  if (!job.is_started) {
    if (runs_in_order(chosen)) return chosen;
    chosen.threads = std::min(chosen.threads, most_session_threads());
    order_within(chosen.tasks.graph, {*limits.memory, chosen.threads});
    make_spill(chosen, cut_by_program);
    return chosen;
  }
  const std::int64_t needed = most_alive(
      chosen.tasks.graph, [](const TaskArray& array) { return bytes_of(array); },
      [](const TaskArray& array) { return array.site; });
  const Bookkeeping bookkeeping = bookkeeping_by_starpu(chosen.tasks);
  const std::int64_t left = left_for_arrays(*limits.memory, bookkeeping);
  chosen.spills = limits.may_spill && left > 0 && needed > chunk_memory(left, limits.threads);
  if (!chosen.spills && left > 0 && needed <= left) return chosen;
  if (!chosen.spills) {
    const auto [wanted, limit] = bytes_texts(needed, *limits.memory);
    throw UserError(
        fmt::format("the plan by {} does not fit: a site holds {} at a time, and the limit is {}\n  beside it, {}\n"
                    "  help: give more, or more ranks, or let chunks go to disk with --spill FOLDER",
                    planner_of(chosen.facts), wanted, limit, bookkeeping_text(chosen.tasks, bookkeeping)));
  }
  const TaskMemory memory{*limits.memory, limits.threads, true};
  order_within(chosen.tasks.graph, memory);
  check_tasks_fit(chosen.tasks, memory, cut_by_program);
  return chosen;
}

void check_room(const std::string& program, const ChosenTasks& chosen,
                const std::function<bool(const StoredRelation&)>& in_place, std::string_view limit) {
  if (chosen.spills) return;
  std::int64_t needed = most_live_bytes(chosen.tasks.graph);
  for (const StoredRelation& input : chosen.tasks.graph.inputs) {
    if (!in_place(input)) continue;
    needed -= element_count(input.bound) * static_cast<std::int64_t>(size_of(input.dtype));
  }
  check_available(needed, fmt::format("running {} by a plan", printable(program)), limit);
}

PlanResources resources_of(const ChosenTasks& chosen, const std::optional<std::string>& folder,
                           std::function<void(std::exception_ptr)> on_failure) {
  std::optional<std::int64_t> memory;
  if (chosen.spills) memory = left_for_arrays(*chosen.limit, bookkeeping_by_starpu(chosen.tasks));
  return {chosen.threads,
          memory,
          {folder.value_or(temporary_folder()), std::move(on_failure)},
          chosen.in_order,
          chosen.limit.has_value()};
}

}  // namespace einrel
