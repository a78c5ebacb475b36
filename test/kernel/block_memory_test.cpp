#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/error.h"
#include "kernel/elementwise/block_ops.h"
#include "support/compare.h"
#include "tensor/convert.h"

namespace einrel::test {
namespace {

constexpr std::array<std::int64_t, 11> steps{1, 2, 3, 4, 5, 8, 100, 0, -1, -2, -7};
constexpr std::array<std::size_t, 9> counts{1, 2, 3, 4, 7, 16, 33, 100, lanes_per_block};

/// Bytes that all differ in their surroundings; as floats they are numbers, infinities and NaN of every size.
std::vector<std::byte> noise(std::size_t count) {
  std::vector<std::byte> bytes(count);
  std::uint32_t state = 7;
  for (std::byte& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24U);
  }
  return bytes;
}

template <class Stored>
Stored element(const std::byte* at) {
  Stored value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
bool same_value(T a, T b) {
  return a == b || (a != a && b != b);
}

/// Loads elements at every step and count, at an odd address, as T.
template <class Stored, class T>
void expect_loads(DType dtype) {
  const std::vector<std::byte> bytes = noise(2 * 100 * lanes_per_block * sizeof(Stored) + 1);
  const std::byte* const middle = bytes.data() + 1 + 100 * lanes_per_block * sizeof(Stored);
  for (const std::int64_t step : steps) {
    for (const std::size_t count : counts) {
      std::vector<T> values(count + 2, T{42});
      const ElementSpan span{0, 1, count};
      load_block(dtype, middle, &span, 1, step, values.data());
      EXPECT_EQ(values.front(), T{42});
      EXPECT_EQ(values.back(), T{42});
      for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t at = step * static_cast<std::int64_t>(i * sizeof(Stored));
        const T want = static_cast<T>(widen(element<Stored>(middle + at)));
        ASSERT_TRUE(same_value(values[i + 1], want)) << name_of(dtype) << ", step " << step << ", " << i << " of "
                                                     << count << ": " << values[i + 1] << ", want " << want;
      }
    }
  }
}

TEST(Loading, WidensElementsAtAnyStepAndAddress) {
  expect_loads<float, float>(DType::f32);
  expect_loads<BFloat16, float>(DType::bf16);
  expect_loads<Float16, float>(DType::f16);
  expect_loads<double, double>(DType::f64);
  expect_loads<std::int32_t, std::int64_t>(DType::i32);
  expect_loads<std::int64_t, std::int64_t>(DType::i64);
  expect_loads<Bool8, Truth>(DType::boolean);
}

TEST(Loading, TakesSpansFromAnywhere) {
  std::vector<float> numbers(1000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const std::array<ElementSpan, 3> spans{{{10, 0, 3}, {900, 3, 20}, {500, 25, 1}}};
  std::array<float, 26> values{};
  const auto* const data = reinterpret_cast<const std::byte*>(numbers.data());
  load_block(DType::f32, data, spans.data(), spans.size(), 2, values.data());
  for (const ElementSpan& span : spans) {
    for (std::size_t i = 0; i < span.count; ++i) {
      EXPECT_EQ(values[span.first + i], static_cast<float>(span.offset + 2 * static_cast<std::int64_t>(i)));
    }
  }
  EXPECT_EQ(values[23], 0) << "a lane of no span";
}

TEST(Loading, RefusesBlocksOfAnotherType) {
  const std::array<std::byte, 8> bytes{};
  const ElementSpan span{0, 0, 1};
  float single = 0;
  double real = 0;
  std::int64_t whole = 0;
  EXPECT_THROW(load_block(DType::f64, bytes.data(), &span, 1, 1, &single), Bug);
  EXPECT_THROW(load_block(DType::f32, bytes.data(), &span, 1, 1, &real), Bug);
  EXPECT_THROW(load_block(DType::f16, bytes.data(), &span, 1, 1, &whole), Bug);
}

/// What computed values are when they are rounded, wrapped or saturated.
template <class T>
std::vector<T> computed(std::size_t count) {
  std::vector<T> values;
  for (std::uint64_t i = 0; values.size() < count; ++i) {
    const std::uint64_t mixed = (i + 1) * 0x9E3779B97F4A7C15U;
    if constexpr (std::is_same_v<T, Truth>) {
      values.push_back(i % 3 == 0 ? 1 : 0);
    } else if constexpr (std::is_integral_v<T>) {
      values.push_back(static_cast<T>(i % 5 == 0 ? 0 : i % 3 == 0 ? mixed : mixed >> 40U));
    } else {
      const double mantissa = 1 + static_cast<double>(mixed >> 12U) / 0x1p52;
      const double signed_mantissa = i % 2 == 0 ? mantissa : -mantissa;
      const double value = std::ldexp(signed_mantissa, static_cast<int>(i % 90) - 60);
      values.push_back(static_cast<T>(i % 17 == 0 ? 0 : value));
    }
  }
  if constexpr (std::is_floating_point_v<T>) {
    values[count / 2] = std::numeric_limits<T>::infinity();
    values[count / 3] = std::numeric_limits<T>::quiet_NaN();
  }
  return values;
}

/// Stores values at every step and count, at an odd address, and nothing between them.
template <class Stored, class T>
void expect_stores(DType dtype) {
  for (const std::int64_t step : steps) {
    if (step == 0) continue;
    for (const std::size_t count : counts) {
      const std::vector<T> values = computed<T>(count);
      const std::vector<std::byte> before = noise(2 * 100 * count * sizeof(Stored) + 1);
      std::vector<std::byte> after = before;
      std::vector<std::byte> want = before;
      const auto middle = static_cast<std::ptrdiff_t>(1 + 100 * count * sizeof(Stored));
      store_block(dtype, values.data(), after.data() + middle, step, count);
      for (std::size_t i = 0; i < count; ++i) {
        const std::ptrdiff_t at = middle + step * static_cast<std::int64_t>(i * sizeof(Stored));
        const auto stored = narrow<Stored>(values[i]);
        std::memcpy(want.data() + at, &stored, sizeof stored);
        if (values[i] == values[i]) continue;  // which NaN it is does not matter
        EXPECT_TRUE(std::isnan(static_cast<double>(widen(element<Stored>(after.data() + at))))) << name_of(dtype);
        std::memcpy(want.data() + at, after.data() + at, sizeof stored);
      }
      ASSERT_EQ(after, want) << name_of(dtype) << ", step " << step << ", " << count << " values";
    }
  }
}

TEST(Storing, NarrowsValuesAtAnyStepAndAddress) {
  expect_stores<float, float>(DType::f32);
  expect_stores<BFloat16, float>(DType::bf16);
  expect_stores<Float16, float>(DType::f16);
  expect_stores<double, double>(DType::f64);
  expect_stores<float, double>(DType::f32);
  expect_stores<BFloat16, double>(DType::bf16);
  expect_stores<Float16, double>(DType::f16);
  expect_stores<std::int32_t, std::int64_t>(DType::i32);
  expect_stores<std::int64_t, std::int64_t>(DType::i64);
  expect_stores<Bool8, std::int64_t>(DType::boolean);
  expect_stores<Bool8, Truth>(DType::boolean);
}

TEST(HalfFloats, AreAllLoadedExactly) {
  for (std::uint32_t begin = 0; begin < 0x10000; begin += lanes_per_block) {
    std::array<std::uint16_t, lanes_per_block> halves{};
    for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(begin + i);
    std::array<float, lanes_per_block> values{};
    const ElementSpan span{0, 0, halves.size()};
    load_block(DType::f16, reinterpret_cast<const std::byte*>(halves.data()), &span, 1, 1, values.data());
    for (std::size_t i = 0; i < halves.size(); ++i) {
      ASSERT_TRUE(same_value(values[i], to_float(Float16{halves[i]}))) << halves[i];
    }
  }
}

TEST(HalfFloats, AreRoundedToNearestWhereverTheFloatLies) {
  // Each half, the middle to the next one, and the floats on both sides of that.
  for (std::uint32_t half = 0; half < 0x7C00; ++half) {
    const float lower = to_float(Float16{static_cast<std::uint16_t>(half)});
    const float upper = half == 0x7BFF ? 65536.0F : to_float(Float16{static_cast<std::uint16_t>(half + 1)});
    const float middle = (lower + upper) / 2;
    const std::array<float, 8> floats{lower,
                                      -lower,
                                      middle,
                                      -middle,
                                      std::nextafter(middle, 0.0F),
                                      -lower,
                                      std::nextafter(middle, 1e9F),
                                      -std::nextafter(middle, 1e9F)};
    std::array<std::uint16_t, floats.size()> stored{};
    store_block(DType::f16, floats.data(), reinterpret_cast<std::byte*>(stored.data()), 1, floats.size());
    for (std::size_t i = 0; i < floats.size(); ++i) ASSERT_EQ(stored[i], to_float16(floats[i]).bits) << floats[i];
  }
}

template <class To, class From>
void expect_conversion(DType to) {
  const std::vector<From> x = computed<From>(200);
  std::vector<To> z(x.size());
  convert_block(to, x.data(), z.data(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const To want = with_stored_type(to, [&]<class Stored>() { return static_cast<To>(widen(narrow<Stored>(x[i]))); });
    EXPECT_TRUE(same_value(z[i], want)) << x[i] << " to " << name_of(to) << ": " << z[i] << ", want " << want;
  }
}

TEST(Converting, RoundsWrapsAndSaturates) {
  for (const DType to : {DType::i32, DType::i64}) {
    expect_conversion<std::int64_t, float>(to);
    expect_conversion<std::int64_t, double>(to);
    expect_conversion<std::int64_t, std::int64_t>(to);
    expect_conversion<std::int64_t, Truth>(to);
  }
  expect_conversion<Truth, float>(DType::boolean);
  expect_conversion<Truth, double>(DType::boolean);
  expect_conversion<Truth, std::int64_t>(DType::boolean);
  expect_conversion<Truth, Truth>(DType::boolean);
  expect_conversion<float, Truth>(DType::f32);
  expect_conversion<double, Truth>(DType::f64);
  expect_conversion<float, double>(DType::f32);
  expect_conversion<float, std::int64_t>(DType::f32);
  expect_conversion<double, float>(DType::f64);
  expect_conversion<double, std::int64_t>(DType::f64);
}

TEST(Converting, SaturatesAtTheEndsOfIntegers) {
  const std::array<double, 12> x{0x1p31,  0x1p31 - 1, -0x1p31, -0x1p31 - 1, 0x1p63,   0x1.fffffffffffffp62,
                                 -0x1p63, -0x1p64,    1e300,   -1e300,      2.999999, -2.999999};
  for (const DType to : {DType::i32, DType::i64}) {
    std::array<std::int64_t, x.size()> z{};
    convert_block(to, x.data(), z.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::int64_t want =
          to == DType::i32 ? std::int64_t{saturate<std::int32_t>(x[i])} : saturate<std::int64_t>(x[i]);
      EXPECT_EQ(z[i], want) << x[i] << " to " << name_of(to);
    }
  }
}

}  // namespace
}  // namespace einrel::test
