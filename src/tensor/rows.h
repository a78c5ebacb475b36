#pragma once

#include <cstdint>
#include <utility>

#include "tensor/tensor.h"

namespace einrel {

/// A shape and strides that visit the same elements in the same order with as few dimensions as possible:
/// extents of 1 are dropped and neighbours that step evenly are merged. At least one dimension remains,
/// and since the others have extents of 2 or more, at most 62 others.
inline std::pair<Shape, Strides> merged_dimensions(const Shape& shape, const Strides& strides) {
  std::pair<Shape, Strides> merged;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == Extent(1)) continue;
    if (!merged.first.empty() && merged.second.back() == strides[d] * shape[d].value()) {
      merged.first.back() = Extent(merged.first.back().value() * shape[d].value());
      merged.second.back() = strides[d];
    } else {
      merged.first.push_back(shape[d]);
      merged.second.push_back(strides[d]);
    }
  }
  if (merged.first.empty()) merged = {{Extent(1)}, {1}};
  return merged;
}

/// Visits all elements in row-major order as rows: visit(offset of the first, number, stride), in elements.
template <class Visit>
void for_each_row(const Shape& shape, const Strides& strides, Visit&& visit) {
  if (element_count(shape) == 0) return;
  auto [outer, steps] = merged_dimensions(shape, strides);
  const std::int64_t count = outer.back().value();
  const std::int64_t stride = steps.back();
  outer.pop_back();
  steps.pop_back();
  for_each_offset(outer, steps, [&](std::int64_t offset) { visit(offset, count, stride); });
}

}  // namespace einrel
