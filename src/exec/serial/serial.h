#pragma once

#include "exec/executor.h"
#include "kernel/workers.h"

namespace einrel {

/// Runs the tasks of a graph whose sites share memory in their order, each on all workers. An array's memory is freed
/// after its last use. Throws RunError when memory runs out.
TaskReport run_serial(const TaskGraph& graph, const TaskBindings& bindings, Workers& workers);

}  // namespace einrel
