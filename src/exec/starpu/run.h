#pragma once

#include <stop_token>

#include "exec/executor.h"
#include "exec/starpu/session.h"

namespace einrel {

/// No more tasks than this are submitted and not done: StarPU has what it keeps of their arrays.
constexpr int most_tasks_submitted = 512;

/// Runs the tasks of a graph by StarPU. In one process the graph's sites share memory. In a job each rank is the site
/// of its number, submits only the tasks that concern it, and returns what it did itself; every rank has to call this
/// with the same graph. Arrays get memory when they are made and lose it after their last use; a rank is at most a few
/// hundred tasks ahead of what is done. Throws what a task threw, RunError when memory runs out.
/// Once a stop is asked for, tasks do nothing more, and RunError is thrown.
TaskReport run_starpu(const TaskGraph& graph, const TaskBindings& bindings, StarpuSession& session, const Job& job,
                      const std::stop_token& stop = {});

}  // namespace einrel
