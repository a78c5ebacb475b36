#pragma once

#include "exec/task_graph.h"

namespace einrel {

/// Puts each task that reads a part of an input right before the first that needs it. Parts that are made, as converted
/// and random ones are, then take no memory while other tasks run.
void read_late(TaskGraph& graph);

}  // namespace einrel
