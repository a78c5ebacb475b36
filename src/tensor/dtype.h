#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace einrel {

/// The type of a tensor's elements. bf16 and f16 are stored narrow and computed in f32.
enum class DType : std::uint8_t { f32, f64, bf16, f16, i32, i64, boolean };

inline constexpr std::array all_dtypes{DType::f32, DType::f64, DType::bf16,   DType::f16,
                                       DType::i32, DType::i64, DType::boolean};

/// "f32", ..., "bool".
std::string_view name_of(DType dtype);
std::optional<DType> dtype_named(std::string_view name);
/// Bytes per element.
std::size_t size_of(DType dtype);

/// What is computed in f32.
constexpr bool is_narrow(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

constexpr bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16 || dtype == DType::f16;
}
constexpr bool is_integer(DType dtype) { return dtype == DType::i32 || dtype == DType::i64; }

/// NumPy's promotion: the smallest type that holds both (bf16 with f16 gives f32, i32 with f32 gives f64).
DType promote(DType a, DType b);

/// IEEE binary16 as stored. Conversion rounds to nearest, ties to even; NaN stays NaN.
struct Float16 {
  std::uint16_t bits = 0;
};
/// The upper half of an f32 as stored. Conversion rounds to nearest, ties to even; NaN stays NaN.
struct BFloat16 {
  std::uint16_t bits = 0;
};
/// One byte per bool, as NumPy stores it; any byte but 0 counts as true.
struct Bool8 {
  std::uint8_t bits = 0;
};

float to_float(Float16 value);
Float16 to_float16(float value);

// In the header, so that loops over elements vectorise.
inline float to_float(BFloat16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U); }
inline BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return {static_cast<std::uint16_t>((bits >> 16U) | 0x40U)};  // keep it a quiet NaN
  const std::uint32_t round_up = 0x7FFFU + ((bits >> 16U) & 1U);                   // ties to even
  return {static_cast<std::uint16_t>((bits + round_up) >> 16U)};
}

/// How one element is computed with: as a double (every float type) or as an int64 (the others).
template <class Stored>
auto widen(Stored value) {
  if constexpr (std::is_same_v<Stored, Bool8>) {
    return static_cast<std::int64_t>(value.bits != 0);
  } else if constexpr (std::is_same_v<Stored, Float16> || std::is_same_v<Stored, BFloat16>) {
    return static_cast<double>(to_float(value));
  } else if constexpr (std::is_floating_point_v<Stored>) {
    return static_cast<double>(value);
  } else {
    return static_cast<std::int64_t>(value);
  }
}

/// Calls `function.template operator()<Stored>()` with the type that stores elements of `dtype`.
template <class Function>
decltype(auto) with_stored_type(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::f32: return function.template operator()<float>();
    case DType::f64: return function.template operator()<double>();
    case DType::bf16: return function.template operator()<BFloat16>();
    case DType::f16: return function.template operator()<Float16>();
    case DType::i32: return function.template operator()<std::int32_t>();
    case DType::i64: return function.template operator()<std::int64_t>();
    case DType::boolean: return function.template operator()<Bool8>();
  }
  throw Bug("a dtype outside its enumeration");
}

}  // namespace einrel
