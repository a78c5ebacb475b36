#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "run/bookkeeping.h"
#include "run/compare_plans.h"
#include "run/session.h"

namespace einrel {

/// A plan for this process under a limit of its memory, what does not fit being on disk.
struct OutOfCorePlan {
  PlanReport plan;
  PlannedTasks tasks;
  std::size_t threads = 1;  ///< that work on it side by side
};

/// What there is for the tasks of a process.
struct TaskMemory {
  std::int64_t limit = 0;  ///< bytes, of the process
  std::size_t threads = 1;
  bool is_in_job = false;  ///< where one task runs at a time, on all threads
};

/// The most that the tensors of one task may take: StarPU would wait for ever for more. As many tasks as run side by
/// side, and as much again on its way to the disk or from it; in a job, from rank to rank, too
/// (exec/executors/starpu/run).
std::int64_t most_task_bytes(const TaskMemory& memory);

/// Lines that say, of what a task is part of (PlannedTasks::names), why it is not cut more finely.
using UncutText = std::function<std::string(std::size_t)>;
/// The labels of a vertex that cannot be cut. `compiled` must outlive it.
UncutText uncut_labels(const Compiled& compiled);

/// The tasks of a plan, each as small as the memory asks and the plan allows: reductions go from range to range of a
/// label, parts of large arrays are cut out one by one, and inputs are read when they are needed.
PlannedTasks tasks_within(const Compiled& compiled, const Plan& plan, const TaskMemory& memory, const Job& job);
/// The same of tasks that are there, but for the ranges.
void order_within(TaskGraph& tasks, const TaskMemory& memory);

/// The least limit above one that is too little for which `fits` holds, as it does for all above that.
std::int64_t least_that(std::int64_t too_little, const std::function<bool(std::int64_t)>& fits);

/// A limit as a user gives one: three digits, and not less.
std::int64_t rounded_up(std::int64_t bytes);

/// "the bookkeeping of 3 tasks takes 1 MB".
std::string bookkeeping_text(const PlannedTasks& tasks, const Bookkeeping& bookkeeping);

/// Says what takes more than a limit, which labels of it cannot be cut and why, and that `enough` would do.
UserError too_little(const PlannedTasks& tasks, const TaskMemory& memory, std::int64_t enough, const UncutText& uncut);

/// Throws UserError naming the vertex, what it takes and the limit when a task takes more than the bookkeeping of all
/// tasks leaves for it.
void check_tasks_fit(const PlannedTasks& tasks, const TaskMemory& memory, const UncutText& uncut);

/// As many threads as can work on such tasks side by side, at most memory.threads.
std::size_t threads_that_fit(const PlannedTasks& tasks, const TaskMemory& memory);

/// What is to be cut.
struct OutOfCoreRequest {
  const Compiled& compiled;
  std::string planner;
  PlanRequest request;
  std::int64_t in_order = 0;  ///< a limit from which on nothing has to be cut: all fits, one task after the other
};

/// Cuts a program so finely that the tensors that all threads work on at once take at most half of what the limit
/// leaves for chunks: by asking the planner for plans for more and more sites, from request.sites on, and, where that
/// does not make chunks smaller, into more parts on the same sites. Fewer threads work side by side where chunks would
/// be too small for all of them to gain anything, or too many to keep books of. Throws as check_tasks_fit does where
/// nothing that was found fits, with a limit for which something was.
OutOfCorePlan plan_out_of_core(OutOfCoreRequest asked, const TaskMemory& memory);

/// The same for the ranks of a job, whose plan has its sites: into more parts on each.
OutOfCorePlan finer_out_of_core(const Compiled& compiled, const PlanReport& plan, const PlanRequest& request,
                                const TaskMemory& memory, const Job& job);

}  // namespace einrel
