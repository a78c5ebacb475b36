#pragma once

#include "engine/plan_report.h"
#include "engine/run_plan.h"

namespace einrel {

/// A plan for this process under a limit of its memory, what does not fit being on disk.
struct OutOfCorePlan {
  PlanReport plan;
  PlannedTasks tasks;
};

/// What there is for the tasks of a process.
struct TaskMemory {
  std::int64_t limit = 0;  ///< bytes, of the process
  std::size_t threads = 1;
  std::size_t at_once = 1;  ///< tasks that run side by side: as many as threads, but in a job one
};

/// Throws UserError unless the tensors that tasks work on at once take at most half of what the limit leaves for
/// chunks, naming the vertex, what it takes and the limit: StarPU would wait for ever.
void check_tasks_fit(const Compiled& compiled, const PlannedTasks& tasks, const TaskMemory& memory);

/// Cuts a program so finely that the tensors that all threads work on at once take at most half of what `limit` leaves
/// for chunks, by asking `planner` for plans for more and more sites, from request.sites on. Throws as check_tasks_fit
/// does when even the finest takes more.
OutOfCorePlan plan_out_of_core(const Compiled& compiled, const std::string& planner, PlanRequest request,
                               std::size_t threads, std::int64_t limit);

}  // namespace einrel
