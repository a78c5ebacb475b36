#pragma once

#include <vector>

#include "einsum/ein_graph.h"
#include "kernel/spec.h"
#include "kernel/workers.h"
#include "tra/kernel.h"

namespace einrel {

/// A kernel of the algebras made ready for arguments of these layouts: every step has chosen what computes it. It may
/// run on several threads at once.
class ChunkKernel {
 public:
  /// Tens of microseconds per step. `onto`: the last step, a reduction that reduces_onto allows, goes on from what the
  /// result holds. Throws UserError when the arguments do not fit the kernel.
  ChunkKernel(const Kernel& kernel, const std::vector<ArrayLayout>& arguments, const ScalarBindings& scalars,
              bool onto = false);

  /// Writes the result in row-major order. Values between steps are in memory from the workers' pool. Throws RunError
  /// when there is none.
  void run(const std::vector<const std::byte*>& arguments, std::byte* result, Workers& workers) const;

 private:
  struct Step {
    PreparedKernel kernel;           ///< of a view that shares its operand's memory none
    std::vector<std::size_t> reads;  ///< as in KernelStep
    ArrayLayout result;
    bool shares = false;
  };
  std::vector<Step> steps_;
};

}  // namespace einrel
