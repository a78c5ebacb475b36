#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "exec/tasks/constant_reads.h"
#include "tra/kernel.h"

namespace einrel {

struct ReducedLabel {
  std::size_t label = 0;
  std::int64_t extent = 0;
};
/// The labels that a kernel reduces for arguments of these bounds and plans cannot cut, if it can be called for ranges
/// of their positions: one EinSum.
std::vector<ReducedLabel> labels_in_ranges(const Kernel& kernel, const std::vector<Shape>& bounds);

/// Positions of extremes are found by two kernels that can be called for ranges. Both compute a value by the same steps
/// in the types that these steps have, and give the same bits for it wherever it stands in whichever range: a position
/// is where the value equals the extreme.
struct ExtremeKernels {
  Kernel extreme;   ///< of the same arguments
  Kernel position;  ///< the extreme is another array among them, behind the others
};
/// nullopt of kernels with another reducer than argmax and argmin. `arrays` are how many arguments are no numbers.
std::optional<ExtremeKernels> extreme_kernels(const Kernel& kernel, const std::vector<Shape>& bounds,
                                              std::size_t arrays);

/// One argument of a kernel, and the positions of it that are read.
struct RangeRead {
  std::size_t argument = 0;
  ConstantPositions positions;
};
/// One argument of a kernel, and the bound of the part of it that is read.
struct PartRead {
  std::size_t argument = 0;
  Shape bound;
};
/// The most that so many positions of a label, one after the other, need of the arguments, wherever they begin: one for
/// every access, numbers behind arrays. Of a padded window, those need most that lie inside.
std::vector<PartRead> most_read(const Kernel& kernel, const std::vector<Shape>& bounds, std::size_t label,
                                std::int64_t length);

/// A kernel, with another reducer than argmax and argmin, that goes through some positions of a label only.
struct KernelOnRange {
  Kernel kernel;                      ///< its result is a partial one
  std::vector<RangeRead> reads;       ///< its arguments; behind them follow
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
