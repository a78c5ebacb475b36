#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "exec/tasks/task_graph.h"

namespace einrel {

/// A kernel among several that run together.
struct MergedKernel {
  Kernel kernel;
  /// Per argument, what it is: an argument of all together, or arguments + i for the result of the i-th of them.
  std::vector<std::size_t> reads;
  bool wanted = false;                      ///< its result becomes an array
  std::optional<IaId> node = std::nullopt;  ///< the operation that it is of: all of them say so, or none
};

/// All their steps as one kernel, called like the last of them.
struct MergedKernels {
  TaskKernel kernel;
  std::vector<std::size_t> steps;  ///< per kernel, the step that computes its result, or in which that is computed
};

/// An element-wise step that one other reads, each element once, is computed in that: nothing lies between a statement
/// and the only one that reads it. O(steps).
MergedKernels merged(const std::vector<MergedKernel>& kernels, std::vector<DType> arguments);

}  // namespace einrel
