#pragma once

#include <cstdint>
#include <string>

#include "tensor/tensor.h"

namespace einrel {

/// Pseudo-random values: floats uniform in (-1, 1), integers uniform in -8..8, bools fair. Every element
/// depends on the seed, the tensor's name and its position only, so that it is the same for every plan, number of
/// threads and number of ranks.
///
/// The elements in the box of `bound` that begins at `begin`, in row-major order.
void fill_random(std::uint64_t seed, const std::string& name, DType dtype, const Shape& shape,
                 const std::vector<std::int64_t>& begin, const Shape& bound, std::byte* to);
/// All of them.
Tensor random_tensor(std::uint64_t seed, const std::string& name, DType dtype, const Shape& shape);

}  // namespace einrel
