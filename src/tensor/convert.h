#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "tensor/dtype.h"

namespace einrel {

/// A float as an integer: truncated towards zero, saturated at the ends of the type, NaN gives 0.
template <class Integer>
Integer saturate(double value) {
  if (value != value) return 0;
  if (value <= static_cast<double>(std::numeric_limits<Integer>::min())) return std::numeric_limits<Integer>::min();
  // 2^63 and 2^31 are exact in double although max() itself may not be.
  if (value >= -static_cast<double>(std::numeric_limits<Integer>::min())) return std::numeric_limits<Integer>::max();
  return static_cast<Integer>(value);
}

/// A double as a float whose last bit records whether anything was lost, so that rounding it on to a narrower type
/// gives what rounding the double at once would give.
inline float round_to_odd(double value) {
  const auto rounded = static_cast<float>(value);
  if (static_cast<double>(rounded) == value || value != value) return rounded;
  auto bits = std::bit_cast<std::uint32_t>(rounded);
  if (std::fabs(static_cast<double>(rounded)) > std::fabs(value)) --bits;  // towards zero
  return std::bit_cast<float>(bits | 1U);
}

/// An integer as a double whose last bit does the same; up to 2^53 it is exact.
inline double round_to_odd(std::int64_t value) {
  constexpr std::int64_t exact = std::int64_t{1} << 53;
  constexpr std::int64_t unit = 1024;  // that doubles up to 2^63 hold
  if (value >= -exact && value <= exact) return static_cast<double>(value);
  const std::int64_t lost = value & (unit - 1);
  return static_cast<double>((value - lost) | (lost != 0 ? unit : 0));
}

/// Any computed value as a float that rounds on as the value itself does.
template <class Computed>
float float_to_round(Computed value) {
  if constexpr (std::is_integral_v<Computed>) {
    return round_to_odd(round_to_odd(static_cast<std::int64_t>(value)));
  } else {
    return round_to_odd(static_cast<double>(value));
  }
}

/// A computed value (double or int64) as it is stored, rounded once: floats round to nearest, int64 to i32 wraps
/// modulo 2^32, double to integer saturates, and anything but 0 is true.
template <class Stored, class Computed>
Stored narrow(Computed value) {
  if constexpr (std::is_same_v<Stored, Bool8>) {
    return {static_cast<std::uint8_t>(value != 0)};
  } else if constexpr (std::is_same_v<Stored, Float16>) {
    return to_float16(float_to_round(value));
  } else if constexpr (std::is_same_v<Stored, BFloat16>) {
    return to_bfloat16(float_to_round(value));
  } else if constexpr (std::is_integral_v<Stored> && std::is_floating_point_v<Computed>) {
    return saturate<Stored>(static_cast<double>(value));
  } else {
    return static_cast<Stored>(value);
  }
}

/// Makes `count` elements at `to` this value, rounded to their type.
inline void fill_elements(DType dtype, std::int64_t count, double value, std::byte* to) {
  with_stored_type(dtype, [&]<class Stored>() {
    const auto stored = narrow<Stored>(value);
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(to + i * static_cast<std::int64_t>(sizeof(Stored)), &stored, sizeof(Stored));
  });
}

}  // namespace einrel
