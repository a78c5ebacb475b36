#include "tensor/dtype.h"

#include <algorithm>
#include <bit>

namespace einrel {
namespace {

constexpr std::array<std::string_view, all_dtypes.size()> dtype_names{"f32", "f64", "bf16", "f16",
                                                                      "i32", "i64", "bool"};

}  // namespace

std::string_view name_of(DType dtype) { return dtype_names[static_cast<std::size_t>(dtype)]; }

std::optional<DType> dtype_named(std::string_view name) {
  const auto found = std::find(dtype_names.begin(), dtype_names.end(), name);
  if (found == dtype_names.end()) return std::nullopt;
  return all_dtypes[static_cast<std::size_t>(found - dtype_names.begin())];
}

std::size_t size_of(DType dtype) {
  return with_stored_type(dtype, []<class Stored>() { return sizeof(Stored); });
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::boolean) return b;
  if (b == DType::boolean) return a;
  if (is_integer(a) && is_integer(b)) return DType::i64;
  // An i32 or i64 beside any float needs more than 24 bits of mantissa: f64, as in NumPy.
  if (is_integer(a) || is_integer(b) || a == DType::f64 || b == DType::f64) return DType::f64;
  return DType::f32;
}

float to_float(Float16 value) {
  const std::uint32_t sign = (value.bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (value.bits >> 10U) & 0x1FU;
  const std::uint32_t mantissa = value.bits & 0x3FFU;
  if (exponent == 0x1FU) return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13U));
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exact in f32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23U) | (mantissa << 13U));
}

Float16 to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return {static_cast<std::uint16_t>(sign | 0x7E00U)};   // NaN
  if (magnitude >= 0x477FF000U) return {static_cast<std::uint16_t>(sign | 0x7C00U)};  // 65520 and above: infinity
  if (magnitude < 0x38800000U) {
    // Below 2^-14 the result is subnormal, a multiple of 2^-24. Adding 0.5 makes the FPU round to exactly that
    // multiple (ties to even) and leaves it in the low bits of the sum.
    const float sum = std::bit_cast<float>(magnitude) + 0.5F;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(sum) - 0x3F000000U))};
  }
  const std::uint32_t round_up = 0xFFFU + ((magnitude >> 13U) & 1U);  // ties to even
  return {static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000U + round_up) >> 13U))};
}

}  // namespace einrel
