#pragma once

#include "base/error.h"
#include "engine/compare_plans.h"
#include "engine/run_plan.h"

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

/// What a process takes beside what is in the arrays: for vertices, tasks, and arrays that are alive. As measured; the
/// first MiB is the process's own.
std::int64_t bookkeeping_bytes(const PlannedTasks& tasks);

/// The most that the tensors of one task may take: StarPU would wait for ever for more. As many tasks as run side by
/// side, and as much again on its way to the disk or from it; in a job, from rank to rank, too (exec/starpu/run).
std::int64_t most_task_bytes(const TaskMemory& memory);

/// Says what takes more than a limit, which labels of it cannot be cut and why, and that `enough` would do.
UserError too_little(const Compiled& compiled, const PlannedTasks& tasks, const TaskMemory& memory,
                     std::int64_t enough);

/// Throws UserError naming the vertex, what it takes and the limit when a task takes more than the bookkeeping of all
/// tasks leaves for it.
void check_tasks_fit(const Compiled& compiled, const PlannedTasks& tasks, const TaskMemory& memory);

/// As many threads as can work on such tasks side by side, at most memory.threads.
std::size_t threads_that_fit(const PlannedTasks& tasks, const TaskMemory& memory);

/// Puts more parts on the same sites, so small that every task fits, or as small as they can be, or as many as are
/// worth handling. Returns the tasks.
PlannedTasks make_tasks_fit(const Compiled& compiled, Plan& plan, const TaskMemory& memory, const Job& job);

/// What is to be cut.
struct OutOfCoreRequest {
  const Compiled& compiled;
  std::string planner;
  PlanRequest request;
  std::size_t threads = 1;
  std::int64_t in_order = 0;  ///< a limit from which on nothing has to be cut: all fits, one task after the other
};

/// Cuts a program so finely that the tensors that all threads work on at once take at most half of what `limit` leaves
/// for chunks: by asking the planner for plans for more and more sites, from request.sites on, and, where that does not
/// make chunks smaller, into more parts on the same sites. Fewer threads work side by side where chunks would be too
/// small for all of them to gain anything, or too many to keep books of. Throws as check_tasks_fit does where nothing
/// that was found fits, with a limit for which something was.
OutOfCorePlan plan_out_of_core(OutOfCoreRequest asked, std::int64_t limit);

}  // namespace einrel
