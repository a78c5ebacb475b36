#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/compile.h"
#include "engine/planned_tasks.h"
#include "kernel/registry.h"

namespace einrel {

/// How a vertex is computed when inputs lie as `layouts` says.
struct VertexKernel {
  std::string kernel;                  ///< a name of all_kernels()
  std::string path;                    ///< what that kernel does here
  double seconds = 0;                  ///< modelled, on one thread
  std::int64_t own_bytes = 0;          ///< workspace per thread
  std::int64_t shared_bytes = 0;       ///< workspace in common
  std::vector<Considered> considered;  ///< all kernels, with seconds or the reason why not
  std::vector<std::string> together;   ///< in one pass over memory with these vertices, if any
  bool row_by_row = false;             ///< the last vertex of a softmax that is computed with them, a row at a time
};

/// The strides of inputs that are not row-major, by name.
using LayoutBindings = std::map<std::string, Strides>;

/// Per vertex; nothing for inputs, views that share memory and reductions of nothing. `whole` are whole_tasks. Scalars
/// without a value count as 1.
std::vector<std::optional<VertexKernel>> chosen_kernels(const Compiled& compiled, const PlannedTasks& whole,
                                                        const LayoutBindings& layouts = {});

}  // namespace einrel
