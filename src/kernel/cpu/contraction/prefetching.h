#pragma once

#include "hwy/base.h"
#include "kernel/cpu/contraction/tile.h"

namespace einrel::contraction {

/// Fetches what is soon needed by a kernel of so many rows, and vectors of so many lanes, a little at a time: all at
/// once would keep the loads of A and B waiting.
template <class T, class Packed, std::size_t rows, std::size_t vectors, std::size_t lanes>
class Prefetching {
 public:
  HWY_INLINE explicit Prefetching(const Tile<T, Packed>& task)
      : z_(task.z),
        z_rows_(task.z_rows),
        next_(reinterpret_cast<const char*>(task.next)),
        next_lines_(task.next_lines) {}

  HWY_INLINE void advance() {
    if (row_ < rows) {
      const T* const z = z_ + z_rows_[row_++];
      HWY_UNROLL(2)
      for (std::size_t v = 0; v < vectors; ++v) __builtin_prefetch(z + v * lanes, 1, 3);
    }
    for (std::int64_t line = 0; line < next_lines_; ++line, next_ += 64) __builtin_prefetch(next_, 0, 2);
  }

 private:
  const T* z_;
  const std::int64_t* z_rows_;
  const char* next_;
  std::int64_t next_lines_;
  std::size_t row_ = 0;
};

}  // namespace einrel::contraction
