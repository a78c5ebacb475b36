#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "exec/tasks/task_graph.h"

namespace einrel {

/// Tasks that bring inputs to where they are used, apart from all others: they run once, however often those do.
struct BroughtOnce {
  TaskGraph graph;          ///< whole arrays are its outputs: as many of the last inputs of the other tasks, in order
  std::vector<Site> sites;  ///< by output, where it lies, to be read there
  std::vector<std::size_t> of;  ///< by output, the input that it is a part of
};

/// Takes the tasks of these operations out of a graph, which read nothing but inputs and each other. What others read
/// of them becomes inputs of the graph, behind those that it has. O(tasks).
BroughtOnce take_out_brought(TaskGraph& graph, const std::set<IaId>& nodes);

}  // namespace einrel
