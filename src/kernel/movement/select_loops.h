#pragma once

#include <cstdint>
#include <tuple>

namespace einrel {

/// The element loops of selections for one instruction set.
struct SelectLoops {
  template <class T>
  using AddRow = void (*)(const T* from, std::int64_t count, double* sums);

  /// sums[i] += from[i]
  std::tuple<AddRow<float>, AddRow<double>> add_row;
  /// sums[i] += values[i] * factor, modulo 2^64
  void (*add_scaled)(const std::int64_t* values, std::int64_t factor, std::int64_t count, std::int64_t* sums);
  /// is_outside[i] = -1 where a position is not from 0 up to, but not including, the extent; there it becomes 0.
  void (*note_outside)(const std::int64_t* positions, std::int64_t extent, std::int64_t count, std::int64_t* is_outside,
                       std::int64_t* inside);
};

/// Those for this processor.
const SelectLoops& select_loops();

}  // namespace einrel
