#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tensor/convert.h"

namespace einrel {
namespace {

/// IEEE 754 from the definition: (-1)^s * 2^(e - bias) * 1.m, or 0.m with the smallest exponent.
double value_of_bits(std::uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto mantissa = static_cast<double>(bits & ((1U << mantissa_bits) - 1U));
  const int exponent = static_cast<int>((bits >> mantissa_bits) & ((1U << exponent_bits) - 1U));
  const double sign = (bits >> (exponent_bits + mantissa_bits)) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + std::ldexp(1.0, mantissa_bits), exponent - bias - mantissa_bits);
}

/// Equal, both NaN, or zeros of the same sign.
bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

TEST(Float16, EveryBitPatternWidensToItsValue) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto narrow_value = Float16{static_cast<std::uint16_t>(bits)};
    ASSERT_TRUE(same(to_float(narrow_value), value_of_bits(bits, 5, 10))) << bits;
  }
}

TEST(BFloat16, EveryBitPatternWidensToItsValue) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto narrow_value = BFloat16{static_cast<std::uint16_t>(bits)};
    ASSERT_TRUE(same(to_float(narrow_value), value_of_bits(bits, 8, 7))) << bits;
  }
}

TEST(Float16, EveryBitPatternSurvivesThereAndBack) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto value = Float16{static_cast<std::uint16_t>(bits)};
    const Float16 back = to_float16(to_float(value));
    if (std::isnan(to_float(value))) {
      ASSERT_TRUE(std::isnan(to_float(back))) << bits;
    } else {
      ASSERT_EQ(back.bits, bits);
    }
  }
}

TEST(BFloat16, EveryBitPatternSurvivesThereAndBack) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto value = BFloat16{static_cast<std::uint16_t>(bits)};
    const BFloat16 back = to_bfloat16(to_float(value));
    if (std::isnan(to_float(value))) {
      ASSERT_TRUE(std::isnan(to_float(back))) << bits;
    } else {
      ASSERT_EQ(back.bits, bits);
    }
  }
}

/// Checks rounding around the middle between every two neighbours among the finite values, positive and negative.
/// `largest` is the pattern of the largest finite value; its upper neighbour would be 2^(max exponent + 1).
template <class Narrow>
void check_rounding(std::uint32_t largest, int exponent_bits, int mantissa_bits, Narrow (*convert)(float)) {
  const std::uint32_t sign = 1U << (exponent_bits + mantissa_bits);
  for (std::uint32_t bits = 0; bits <= largest; ++bits) {
    const double low = value_of_bits(bits, exponent_bits, mantissa_bits);
    const double high = bits < largest ? value_of_bits(bits + 1, exponent_bits, mantissa_bits)
                                       : std::ldexp(1.0, 1 << (exponent_bits - 1));
    const auto middle = static_cast<float>(low + (high - low) / 2);
    if (static_cast<double>(middle) != low + (high - low) / 2) continue;  // below f32's own smallest step
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(convert(middle).bits, even);
    ASSERT_EQ(convert(std::nextafter(middle, -1.0F)).bits, bits);
    ASSERT_EQ(convert(std::nextafter(middle, INFINITY)).bits, bits + 1);
    ASSERT_EQ(convert(-middle).bits, sign | even);
  }
}

TEST(Float16, RoundsToTheNearestAndTiesToEven) { check_rounding<Float16>(0x7BFF, 5, 10, to_float16); }
TEST(BFloat16, RoundsToTheNearestAndTiesToEven) { check_rounding<BFloat16>(0x7F7F, 8, 7, to_bfloat16); }

TEST(Float16, ValuesOutOfRangeBecomeInfinity) {
  EXPECT_EQ(to_float16(65520.0F).bits, 0x7C00);
  EXPECT_EQ(to_float16(65519.996F).bits, 0x7BFF);
  EXPECT_EQ(to_float16(-1e30F).bits, 0xFC00);
  EXPECT_EQ(to_float16(1e-30F).bits, 0x0000);
  EXPECT_EQ(to_float16(-1e-30F).bits, 0x8000);
}

TEST(NarrowFloats, NotANumberStaysOneWhateverItsPayload) {
  for (const std::uint32_t bits : {0x7F800001U, 0x7FC00000U, 0xFFFFFFFFU, 0xFF800001U}) {
    EXPECT_TRUE(std::isnan(to_float(to_float16(std::bit_cast<float>(bits)))));
    EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(bits)))));
  }
}

TEST(DType, NamesLeadBackToTheType) {
  for (const DType dtype : all_dtypes) EXPECT_EQ(dtype_named(name_of(dtype)), dtype);
  EXPECT_EQ(name_of(DType::boolean), "bool");
  EXPECT_EQ(dtype_named("float32"), std::nullopt);
  EXPECT_EQ(dtype_named(""), std::nullopt);
}

TEST(DType, SizesAreThoseOfTheFormats) {
  const std::vector<std::size_t> sizes{4, 8, 2, 2, 4, 8, 1};
  for (std::size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(size_of(all_dtypes.at(i)), sizes[i]);
}

/// numpy.promote_types, with ml_dtypes for bf16, written out.
TEST(DType, PromotesAsNumPyDoes) {
  const std::vector<std::vector<std::string>> table{// f32    f64    bf16   f16    i32    i64    bool
                                                    {"f32", "f64", "f32", "f32", "f64", "f64", "f32"},     // f32
                                                    {"f64", "f64", "f64", "f64", "f64", "f64", "f64"},     // f64
                                                    {"f32", "f64", "bf16", "f32", "f64", "f64", "bf16"},   // bf16
                                                    {"f32", "f64", "f32", "f16", "f64", "f64", "f16"},     // f16
                                                    {"f64", "f64", "f64", "f64", "i32", "i64", "i32"},     // i32
                                                    {"f64", "f64", "f64", "f64", "i64", "i64", "i64"},     // i64
                                                    {"f32", "f64", "bf16", "f16", "i32", "i64", "bool"}};  // bool
  for (std::size_t a = 0; a < all_dtypes.size(); ++a) {
    for (std::size_t b = 0; b < all_dtypes.size(); ++b) {
      EXPECT_EQ(name_of(promote(all_dtypes.at(a), all_dtypes.at(b))), table[a][b]) << a << " " << b;
    }
  }
}

/// Around the middle between every two neighbours, where a detour through f32 would round it to the middle itself.
template <class Narrow>
void check_one_rounding_of_f64(std::uint32_t largest, int exponent_bits, int mantissa_bits) {
  for (std::uint32_t bits = 0; bits <= largest; ++bits) {
    const double low = value_of_bits(bits, exponent_bits, mantissa_bits);
    const double step = low - value_of_bits(bits == 0 ? 0 : bits - 1, exponent_bits, mantissa_bits);
    const double high = bits < largest ? value_of_bits(bits + 1, exponent_bits, mantissa_bits) : low + step;
    const double middle = low + (high - low) / 2;
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(narrow<Narrow>(middle).bits, even) << bits;
    ASSERT_EQ(narrow<Narrow>(std::nextafter(middle, 0.0)).bits, bits) << bits;
    ASSERT_EQ(narrow<Narrow>(std::nextafter(middle, INFINITY)).bits, bits + 1) << bits;
    const std::uint32_t sign = 0x8000;
    ASSERT_EQ(narrow<Narrow>(-std::nextafter(middle, 0.0)).bits, sign | bits) << bits;
    ASSERT_EQ(narrow<Narrow>(-std::nextafter(middle, INFINITY)).bits, sign | (bits + 1)) << bits;
  }
}

TEST(Convert, DoublesRoundOnceToNarrowFloats) {
  check_one_rounding_of_f64<Float16>(0x7BFF, 5, 10);
  check_one_rounding_of_f64<BFloat16>(0x7F7F, 8, 7);
  EXPECT_EQ(narrow<Float16>(65519.9999999).bits, 0x7BFF);
  EXPECT_EQ(narrow<Float16>(65520.0).bits, 0x7C00);
  EXPECT_EQ(narrow<BFloat16>(1e300).bits, 0x7F80);
  EXPECT_EQ(narrow<BFloat16>(-1e-300).bits, 0x8000);
}

TEST(Convert, IntegersRoundOnceToNarrowFloats) {
  for (std::uint32_t bits = 0x3F80; value_of_bits(bits, 8, 7) < 0x1p62; ++bits) {  // from 1 on
    const double low = value_of_bits(bits, 8, 7);
    const double half = (value_of_bits(bits + 1, 8, 7) - low) / 2;
    if (half < 2) continue;
    const auto middle = static_cast<std::int64_t>(low) + static_cast<std::int64_t>(half);
    ASSERT_EQ(narrow<BFloat16>(middle).bits, bits % 2 == 0 ? bits : bits + 1) << middle;
    ASSERT_EQ(narrow<BFloat16>(middle - 1).bits, bits) << middle;
    ASSERT_EQ(narrow<BFloat16>(middle + 1).bits, bits + 1) << middle;
    ASSERT_EQ(narrow<BFloat16>(-middle - 1).bits, 0x8000 | (bits + 1)) << middle;
    ASSERT_EQ(narrow<BFloat16>(1 - middle).bits, 0x8000 | bits) << middle;
  }
  EXPECT_EQ(narrow<BFloat16>(std::int64_t{16842753}).bits, 0x4B81);  // 2^24 + 2^16 + 1, above the middle
  EXPECT_EQ(narrow<BFloat16>(std::numeric_limits<std::int64_t>::min()).bits, 0xDF00);
  EXPECT_EQ(narrow<BFloat16>(std::numeric_limits<std::int64_t>::max()).bits, 0x5F00);
  EXPECT_EQ(narrow<Float16>(std::int64_t{65519}).bits, 0x7BFF);
  EXPECT_EQ(narrow<Float16>(std::int64_t{65520}).bits, 0x7C00);
}

TEST(Convert, FloatsToIntegersTruncateAndSaturate) {
  EXPECT_EQ(narrow<std::int32_t>(2.9), 2);
  EXPECT_EQ(narrow<std::int32_t>(-2.9), -2);
  EXPECT_EQ(narrow<std::int32_t>(3e9), std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(narrow<std::int32_t>(-3e9), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(narrow<std::int32_t>(2147483647.5), std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(narrow<std::int64_t>(9223372036854775808.0), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(narrow<std::int64_t>(9223372036854774784.0), 9223372036854774784);
  EXPECT_EQ(narrow<std::int64_t>(-INFINITY), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(narrow<std::int64_t>(std::nan("")), 0);
}

TEST(Convert, LongIntegersWrapIntoShortOnes) {
  EXPECT_EQ(narrow<std::int32_t>((std::int64_t{1} << 32) + 5), 5);
  EXPECT_EQ(narrow<std::int32_t>(std::int64_t{1} << 31), std::numeric_limits<std::int32_t>::min());
}

TEST(Convert, EverythingButZeroIsTrue) {
  EXPECT_EQ(narrow<Bool8>(0.25).bits, 1);
  EXPECT_EQ(narrow<Bool8>(std::nan("")).bits, 1);
  EXPECT_EQ(narrow<Bool8>(-0.0).bits, 0);
  EXPECT_EQ(narrow<Bool8>(std::int64_t{256}).bits, 1);
  EXPECT_EQ(widen(Bool8{255}), 1);
}

}  // namespace
}  // namespace einrel
