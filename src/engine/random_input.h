#pragma once

#include <cstdint>
#include <string>

#include "tensor/tensor.h"

namespace einrel {

/// A tensor of pseudo-random values: floats uniform in (-1, 1), integers uniform in -8..8, bools fair. Every element
/// depends on the seed, the tensor's name and its position only, so that it is the same for every plan, number of
/// threads and number of ranks.
Tensor random_tensor(std::uint64_t seed, const std::string& name, DType dtype, const Shape& shape);

}  // namespace einrel
