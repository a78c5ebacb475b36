#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "exec/executor.h"
#include "exec/task_body.h"

namespace einrel {

/// A task graph made ready for inputs that lie as these and for values of its scalars: it is known which kernels its
/// tasks call and which arrays are parts of inputs where they lie. Only memory is missing. Any number of runs may use
/// it, at once, too.
class PreparedTasks {
 public:
  /// For the inputs and scalars of a run. `graph` must outlive it. Tens of microseconds per kernel that
  /// `bindings.kernels` has not made ready yet. Throws as ChunkKernel does.
  PreparedTasks(const TaskGraph& graph, const TaskBindings& bindings);

  const TaskGraph& graph() const { return graph_; }
  /// Whether inputs lie as those.
  bool is_for(const TaskBindings& bindings) const;
  /// For other values of scalars; `bindings` are such that it is for, with the same kernels, bound to these values.
  void rebind(const TaskBindings& bindings);
  ArrayLayout layout(ArrayId array) const;
  /// That a task calls.
  const ChunkKernel& kernel(std::size_t task) const { return *called_[task]; }
  /// nullptr of arrays that are no part of an input where it lies.
  const PartInPlace* in_place(ArrayId array) const {
    const std::uint32_t part = part_of_[array.index];
    return part == 0 ? nullptr : &parts_[part - 1];
  }

 private:
  void prepare(std::size_t task, std::optional<PartInPlace> part);
  void find_kernel(std::size_t task);

  const TaskGraph& graph_;
  std::vector<std::optional<ArrayLayout>> inputs_;
  std::shared_ptr<ChunkKernels> kernels_;
  ScalarBindings scalars_;
  std::vector<PartInPlace> parts_;
  std::vector<std::uint32_t> part_of_;      // by array: its number in parts_, from 1, or 0
  std::vector<const ChunkKernel*> called_;  // by task; of most kinds none
};

}  // namespace einrel
