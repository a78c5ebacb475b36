#pragma once

#include <cstdint>

#include "exec/tasks/task_graph.h"

namespace einrel {

/// A task that puts an array together has all of those in memory that it reads parts of. Of one that takes more than
/// `most_bytes`, the parts are cut out first, by tasks behind the ones that make those arrays, each of which has one of
/// them in memory, once. An array that all its readers together take apart may then be as large as one that a kernel
/// makes, however many are needed for what is put together.
void cut_parts_out(TaskGraph& graph, std::int64_t most_bytes);

}  // namespace einrel
