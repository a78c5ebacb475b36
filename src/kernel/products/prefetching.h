#pragma once

#include "hwy/base.h"
#include "kernel/products/tile.h"
#include "machine/processor.h"

namespace einrel::contraction {

/// Fetches what is soon needed by a kernel of so many rows, and vectors of so many lanes, a little at a time: all at
/// once would keep the loads of A and B waiting.
template <class T, class Packed, std::size_t rows, std::size_t vectors, std::size_t lanes>
class Prefetching {
 public:
  HWY_INLINE explicit Prefetching(const Tile<T, Packed>& task)
      : z_(task.z), z_rows_(task.z_rows), next_rows_(task.next_rows), next_columns_(task.next_columns) {}

  HWY_INLINE void advance() {
    if (row_ < rows) {
      const T* const z = z_ + z_rows_[row_++];
      HWY_UNROLL(2)
      for (std::size_t v = 0; v < vectors; ++v) __builtin_prefetch(z + v * lanes, 1, 3);
    }
    fetch(next_rows_);
    fetch(next_columns_);
  }

 private:
  static HWY_INLINE void fetch(Ahead<Packed>& ahead) {
    if (ahead.lines == 0) return;
    const Packed* line = ahead.begin;
    for (std::int64_t l = 0; l < ahead.lines; ++l, line += ahead.stride) {
      HWY_UNROLL(2)
      for (std::size_t e = 0; e < fetched_slots; e += nominal_processor.line_bytes / sizeof(Packed))
        __builtin_prefetch(line + e, 0, 2);
    }
    ahead.begin += fetched_slots;
  }

  const T* z_;
  const std::int64_t* z_rows_;
  Ahead<Packed> next_rows_;
  Ahead<Packed> next_columns_;
  std::size_t row_ = 0;
};

}  // namespace einrel::contraction
