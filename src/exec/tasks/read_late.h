#pragma once

#include <cstdint>

#include "exec/tasks/task_graph.h"

namespace einrel {

/// Puts each task that reads a part of an input right before the first that needs it. Parts that are made, as converted
/// and random ones are, then take no memory while other tasks run. One that another task needs, when the tasks between
/// them have made more than `most_bytes`, is read again: that takes work, where keeping it would take memory, or a way
/// to the disk and back.
void read_late(TaskGraph& graph, std::int64_t most_bytes);

}  // namespace einrel
