#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/products/combination.h"
#include "tensor/dtype.h"

namespace einrel::contraction {

/// Finished values on their way into the result: value (r, c) of a block goes to offset rows[r] + columns[c].
template <class T>
struct BlockStore {
  const T* values = nullptr;  ///< value (r, c) at values[r * stride + c]
  std::int64_t stride = 0;
  std::int64_t row_count = 0;
  std::int64_t column_count = 0;
  std::byte* result = nullptr;
  DType stored = DType::f32;
  const std::int64_t* rows = nullptr;
  const std::int64_t* columns = nullptr;
  T scale = 1;
  bool accumulate = false;  ///< the result is reduced with the values
  Reduce reduce = Reduce::sum;
};

/// At any alignment, rounded to nearest.
template <class T>
void store_block(const BlockStore<T>& store);

}  // namespace einrel::contraction
