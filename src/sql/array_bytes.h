#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace einrel::sql {

/// One chunk as a database stores it: "ERA1", one byte of dtype, one of rank, two of 0; each extent as 8 bytes; the
/// elements in row-major order. All numbers little-endian. O(elements).
std::vector<std::byte> array_bytes(const Tensor& tensor);

/// The array in these bytes, as a view of them: they must outlive it. Throws UserError for any others.
Tensor array_in(std::span<const std::byte> bytes);

}  // namespace einrel::sql
