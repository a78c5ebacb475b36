#pragma once

#include "exec/executor.h"
#include "exec/starpu/session.h"

namespace einrel {

/// Runs the tasks of a graph whose sites share memory side by side, one on each of StarPU's threads. It has the tasks
/// only: which of them wait for others is counted here, and arrays are memory of this process, which costs a fraction
/// of what StarPU's bookkeeping of data does. The tasks that come first in the graph go first, and none begins more
/// than a few hundred tasks before its turn, so that little is alive at a time. Throws what a task threw.
TaskReport run_on_threads(const TaskGraph& graph, const TaskBindings& bindings, StarpuSession& session);

}  // namespace einrel
