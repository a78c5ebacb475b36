#pragma once

#include <cstddef>

#include "exec/task_graph.h"

namespace einrel {

// Guesses at what tasks take in one process, good enough to choose how they run. They take no part in any result.

/// One task after the other. Kernels alone have parts for several threads, none less than some tenths of a millisecond,
/// and wait for the last one.
double seconds_in_order(const TaskGraph& graph, std::size_t threads);

/// Side by side, each on one thread, when each begins as soon as those are done that it waits for, and a thread is
/// free.
double seconds_side_by_side(const TaskGraph& graph, std::size_t threads);

}  // namespace einrel
