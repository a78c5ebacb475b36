#pragma once

#include <cstdint>
#include <string_view>

#include "einsum/expr/functions.h"

namespace einrel {

/// Where a random number stands: each of these numbers gives another one.
struct RandomPlace {
  std::int64_t seed = 0;
  std::int64_t position = 0;   ///< in row-major order of the whole tensor
  std::int64_t iteration = 0;  ///< its lower 32 bits count
  std::uint32_t stream = 0;    ///< of the tensor
};

/// The random number at a place, the same on every machine and for any cut: Philox 4x32-10 (Salmon et al. 2011,
/// "Parallel random numbers: as easy as 1, 2, 3") with the seed as key. uniform: the upper 53 bits (24 of `is_single`)
/// of the first two words, from 0 up to, but not including, 1. normal: mean 0, deviation 1, by Box and Muller's
/// transform of all four words.
double random_number(RandomFunction function, const RandomPlace& place, bool is_single);

/// The stream of a tensor by its name: FNV-1a with 32 bits.
std::uint32_t stream_of(std::string_view name);

}  // namespace einrel
