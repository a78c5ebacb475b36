#pragma once

#include <cstdint>
#include <type_traits>

#include "tensor/dtype.h"

namespace einrel::contraction {

/// Two bf16 of one line at inner positions 2s and 2s + 1, the first in the low half: what slot s of a panel holds where
/// the processor multiplies and adds such pairs.
using BFloat16Pair = std::uint32_t;

/// Lines and slots of pairs that one register of a matrix unit (AMX) holds.
inline constexpr std::int64_t block_side = 16;

template <class Packed>
inline constexpr bool is_pair = std::is_same_v<Packed, BFloat16Pair>;

/// How many slots of a line so many inner positions take; of a pair that is not complete, the other half is 0.
template <class Packed>
constexpr std::int64_t slots_for(std::int64_t positions) {
  return is_pair<Packed> ? (positions + 1) / 2 : positions;
}

}  // namespace einrel::contraction
