#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "einsum/graph/ein_graph.h"

namespace einrel {

/// One dimension of the tensor that a window slides over: X[.., stride·y + dilation·d + first, ..].
struct SlidingWindow {
  std::size_t dimension = 0;  ///< of the tensor
  std::size_t result = 0;     ///< the label y, of the result
  std::size_t filter = 0;     ///< the label d, of the filter, which is reduced
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t first = 0;    ///< the lowest element that is read, for y = 0
  bool is_reversed = false;  ///< d goes from the last element of the filter to the first
};

/// A sum of products that is what libraries call a convolution: the windows slide over a tensor with batches and
/// channels, and a filter with features and channels.
struct Convolution {
  std::size_t tensor = 0;  ///< operands
  std::size_t filter = 1;
  std::vector<std::size_t> batches;   ///< labels of the tensor and the result
  std::vector<std::size_t> channels;  ///< of the tensor and the filter
  std::vector<std::size_t> features;  ///< of the filter and the result
  std::vector<SlidingWindow> windows;
};

/// The sum of products of two operands as a convolution over up to three dimensions, with zeros outside of the tensor;
/// nothing where it is none.
std::optional<Convolution> convolution_of(const EinSum& einsum, std::size_t tensor, std::size_t filter);

}  // namespace einrel
