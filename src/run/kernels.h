#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernel/registry.h"
#include "run/planned_tasks.h"

namespace einrel {

/// How some of a vertex's tasks compute it: those whose chunks are as large, and lie alike.
struct KernelCall {
  std::string kernel;                                         ///< a name of all_kernels()
  std::string path;                                           ///< what that kernel does here
  double seconds = 0;                                         ///< modelled, of one task on one thread
  std::int64_t own_bytes = 0;                                 ///< workspace per thread
  std::int64_t shared_bytes = 0;                              ///< workspace in common
  std::vector<Considered> considered;                         ///< all kernels, with seconds or the reason why not
  std::vector<std::pair<std::string, std::int64_t>> extents;  ///< labels, as far as a chunk goes
  std::vector<std::string> together;                          ///< in one pass over memory with these vertices, if any
  bool row_by_row = false;  ///< the last vertex of a softmax that is computed with them, a row at a time
  std::size_t times = 1;    ///< how many tasks
  double all_seconds() const { return seconds * static_cast<double>(times); }
};

/// The strides of inputs that are not row-major, by name.
using LayoutBindings = std::map<std::string, Strides>;

/// Of every input, in order.
std::vector<std::optional<ArrayLayout>> input_layouts(const TaskGraph& graph, const LayoutBindings& given);

/// Per vertex of the tasks (PlannedTasks::names), those that take longest together first; none of inputs, views that
/// share memory and reductions of nothing. Scalars of `graph` without a value count as 1.
/// `tell` is told of every call of every task, in their order; `times` is 1 there.
using CallListener = std::function<void(std::size_t task, const KernelCall& call)>;
std::vector<std::vector<KernelCall>> kernel_calls(const EinGraph& graph, const PlannedTasks& tasks,
                                                  const LayoutBindings& layouts = {}, const CallListener& tell = {});

}  // namespace einrel
