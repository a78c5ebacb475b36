#pragma once

#include "exec/executor.h"
#include "exec/prepared_tasks.h"
#include "kernel/workers.h"

namespace einrel {

/// Runs all tasks in their order, each on all workers; what is sent is not copied. An array's memory is freed after its
/// last use. `tasks` are made ready for these inputs. Throws RunError when memory runs out.
TaskReport run_serial(const PreparedTasks& tasks, const TaskBindings& bindings, Workers& workers);

/// The same without a report, which would take longer than a small run. `freed` are last_uses of the graph.
void run_unreported(const PreparedTasks& tasks, const std::vector<std::vector<ArrayId>>& freed,
                    const TaskBindings& bindings, Workers& workers);

}  // namespace einrel
