#pragma once

#include "exec/executor.h"
#include "kernel/workers.h"

namespace einrel {

/// Runs all tasks in their order, each on all workers; what is sent is not copied. An array's memory is freed after its
/// last use. Throws RunError when memory runs out.
TaskReport run_serial(const TaskGraph& graph, const TaskBindings& bindings, Workers& workers);

}  // namespace einrel
