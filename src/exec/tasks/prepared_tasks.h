#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "exec/executors/executor.h"
#include "exec/tasks/task_body.h"

namespace einrel {

/// A task graph made ready for inputs that lie as these and for values of its scalars: it is known which kernels its
/// tasks call, which arrays are parts of inputs where they lie, and when arrays are needed no more. Only memory is
/// missing. Any number of runs may use it, at once, too.
class PreparedTasks {
 public:
  /// For the inputs and scalars of a run; `site`: for the tasks of that one alone, where each has a memory. `graph`
  /// must outlive it. Tens of microseconds per kernel that `kernels`, those of the graph, have not made ready yet.
  /// Throws as ChunkKernel does.
  PreparedTasks(const TaskGraph& graph, const TaskBindings& bindings, std::optional<Site> site = std::nullopt,
                std::shared_ptr<ChunkKernels> kernels = nullptr);

  const TaskGraph& graph() const { return graph_; }
  /// Whether inputs lie as those.
  bool is_for(const TaskBindings& bindings) const;
  /// For these values of scalars, also where others that have the same kernels were for other values meanwhile.
  void rebind(const ScalarBindings& scalars);
  ArrayLayout layout(ArrayId array) const;
  /// That a task calls.
  const ChunkKernel& kernel(std::size_t task) const { return *called_[task]; }
  /// nullptr of arrays that are no part of an input where it lies.
  const PartInPlace* in_place(ArrayId array) const {
    const std::uint32_t part = part_of_[array.index];
    return part == 0 ? nullptr : &parts_[part - 1];
  }
  const LastUses& last_uses() const { return last_uses_; }
  /// The arrays that no task after this one reads.
  std::span<const ArrayId> last_used_by(std::size_t task) const { return last_uses_[task]; }

 private:
  void find_kernel(std::size_t task);

  const TaskGraph& graph_;
  std::vector<std::optional<ArrayLayout>> inputs_;
  std::shared_ptr<ChunkKernels> kernels_;
  std::size_t changes_;  // of the kernels' scalars, that are known here
  std::vector<PartInPlace> parts_;
  std::vector<std::uint32_t> part_of_;      // by array: its number in parts_, from 1, or 0
  std::vector<const ChunkKernel*> called_;  // by task; of most kinds none
  LastUses last_uses_;
};

}  // namespace einrel
