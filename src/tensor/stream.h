#pragma once

#include <bit>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "tensor/tensor.h"

namespace einrel {

/// What a file of several tensors is written from.
struct NamedTensor {
  std::string name;
  Tensor tensor;
  bool is_complex = false;  ///< its last dimension is that of the parts of complex numbers
};

/// Where a writer puts its bytes, in order.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// Where a reader takes its bytes from, in order: fills what it is given. Throws UserError where there are no more.
using ByteSource = std::function<void(std::span<std::byte>)>;

/// Hands all elements in row-major order to `sink`, each in the given byte order, in pieces of at most
/// 1 MiB: no second copy of the tensor is made, whatever its strides.
void stream_elements(const Tensor& tensor, std::endian order, const ByteSink& sink);

}  // namespace einrel
