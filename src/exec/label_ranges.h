#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "exec/constant_reads.h"
#include "tra/kernel.h"

namespace einrel {

struct ReducedLabel {
  std::size_t label = 0;
  std::int64_t extent = 0;
};
/// The labels that a kernel reduces for arguments of these bounds and plans cannot cut, if it can be called for ranges
/// of their positions: one EinSum, of any reduction but argmax and argmin.
std::vector<ReducedLabel> labels_in_ranges(const Kernel& kernel, const std::vector<Shape>& bounds);

/// A kernel that goes through some positions of a label only, on what these need of its arguments.
struct KernelOnRange {
  /// One argument of the kernel that it is made of, and the positions of it that are read.
  struct Read {
    std::size_t argument = 0;
    ConstantPositions positions;
  };
  Kernel kernel;                      ///< its result is a partial one
  std::vector<Read> reads;            ///< by argument of `kernel`: one for every access; then follow
  std::vector<std::int64_t> numbers;  ///< as i64 of rank 0
};
KernelOnRange on_range(const Kernel& kernel, const std::vector<Shape>& bounds, std::size_t label, Positions range);

/// How results of all ranges become that of the kernel.
struct RangesTogether {
  Kernel fold;    ///< of two partial results
  Kernel finish;  ///< of the folded one; the identity where there is nothing to do
};
RangesTogether ranges_together(const Kernel& kernel, const std::vector<Shape>& bounds);

}  // namespace einrel
