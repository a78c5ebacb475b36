#pragma once

#include <cstddef>
#include <vector>

#include "exec/tasks/task_graph.h"
#include "machine/machine.h"

namespace einrel {

// When tasks are done that take so long each, by the order in which executors run them. It takes no part in any result.

/// One task after the other.
double seconds_in_order(const std::vector<double>& seconds);

/// Side by side on so many threads, each on one of them, which begins as soon as those are done that it waits for, and
/// a thread is free.
double seconds_side_by_side(const TaskGraph& graph, const std::vector<double>& seconds, std::size_t threads);

/// Whether these tasks of one process are sooner done one after the other, each on all threads, than side by side, by
/// what each takes by its operations and bytes alone, of nominal_processor: with one thread, say, or one site.
bool is_sooner_in_order(const TaskGraph& graph, std::size_t threads);

/// On sites with a memory of their own, one task after the other on each; what comes from another site is on its way
/// meanwhile, one message after the other at who receives them. A Send takes no seconds but these.
double seconds_on_sites(const TaskGraph& graph, const std::vector<double>& seconds, const Machine& machine);

}  // namespace einrel
