#include "kernel/elementwise/block_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "support/compare.h"

namespace einrel::test {
namespace {

template <class T>
class FloatBlocks : public testing::Test {
 protected:
  static constexpr double epsilon = std::numeric_limits<T>::epsilon();

  /// Specials, and magnitudes from 1e-30 to 1e30 with both signs, dense where functions bend.
  static std::vector<T> arguments() {
    const T infinity = std::numeric_limits<T>::infinity();
    std::vector<T> all{0, -T{0}, infinity, -infinity, std::numeric_limits<T>::quiet_NaN(), 1, -1, T(0.5)};
    for (double magnitude = 1e-30; magnitude < 1e30; magnitude *= 1.9) {
      all.push_back(static_cast<T>(magnitude));
      all.push_back(static_cast<T>(-magnitude));
    }
    for (double x = -20; x < 20; x += 0.0371) all.push_back(static_cast<T>(x));
    for (double x = -120; x < 120; x += 1.37) all.push_back(static_cast<T>(x));
    return all;
  }

  /// Near 0 a product with `factor` magnifies the rounding of the other factor to the least number.
  static testing::AssertionResult is_close(T got, double want, double factor = 0) {
    const auto rounded = static_cast<double>(static_cast<T>(want));
    const auto least = static_cast<double>(std::numeric_limits<T>::denorm_min());
    const double allowed = 4 * epsilon * std::abs(want) + least * (4 + std::abs(factor));
    if (same(static_cast<double>(got), rounded) || std::abs(static_cast<double>(got) - want) <= allowed) {
      return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << "got " << got << ", want " << want;
  }

  static void expect_close(UnaryFunction function, const std::vector<T>& x) {
    for (std::size_t begin = 0; begin < x.size(); begin += lanes_per_block) {
      const std::size_t n = std::min(lanes_per_block, x.size() - begin);
      std::vector<T> z(n);
      apply_block(function, x.data() + begin, z.data(), n);
      for (std::size_t i = 0; i < n; ++i) {
        const auto argument = static_cast<double>(x[begin + i]);
        ASSERT_TRUE(is_close(z[i], apply(function, argument), argument)) << name_of(function) << " of " << argument;
      }
    }
  }
};

using FloatTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(FloatBlocks, FloatTypes);

TYPED_TEST(FloatBlocks, ComputeEveryFunctionToFourUnitsInTheLastPlace) {
  const std::vector<TypeParam> x = this->arguments();
  for (int f = 0; f <= static_cast<int>(UnaryFunction::floor); ++f) {
    ASSERT_NO_FATAL_FAILURE(this->expect_close(static_cast<UnaryFunction>(f), x));
  }
}

TYPED_TEST(FloatBlocks, ComputeEveryFunctionOfNumbersOfEveryExponent) {
  using Limits = std::numeric_limits<TypeParam>;
  std::vector<TypeParam> x;
  const int mantissas = sizeof(TypeParam) == sizeof(float) ? 24 : 3;
  for (int exponent = Limits::min_exponent - Limits::digits; exponent < Limits::max_exponent; ++exponent) {
    for (int i = 0; i < mantissas; ++i) {
      const double mantissa = 1 + std::fmod(0.618033988749895 * static_cast<double>(x.size() + 1), 1.0);
      x.push_back(std::ldexp(static_cast<TypeParam>(mantissa), exponent));
      x.push_back(-x.back());
    }
  }
  for (int f = 0; f <= static_cast<int>(UnaryFunction::floor); ++f) {
    ASSERT_NO_FATAL_FAILURE(this->expect_close(static_cast<UnaryFunction>(f), x));
  }
}

TYPED_TEST(FloatBlocks, ComputePowersOfAnySigns) {
  using Limits = std::numeric_limits<TypeParam>;
  std::vector<TypeParam> numbers{0,
                                 1,
                                 2,
                                 3,
                                 4,
                                 0.5,
                                 1.5,
                                 0.1F,
                                 7,
                                 63,
                                 64,
                                 1e9F,
                                 1e-9F,
                                 Limits::infinity(),
                                 Limits::min(),
                                 Limits::denorm_min(),
                                 Limits::max(),
                                 1 / Limits::epsilon(),
                                 Limits::quiet_NaN()};
  const std::size_t positive = numbers.size();
  for (std::size_t i = 0; i < positive; ++i) numbers.push_back(-numbers[i]);
  for (const TypeParam exponent : numbers) {
    const std::vector<TypeParam> b(numbers.size(), exponent);
    std::vector<TypeParam> z(numbers.size());
    apply_block(BinaryFunction::power, numbers.data(), b.data(), z.data(), z.size());
    for (std::size_t i = 0; i < z.size(); ++i) {
      const double want = std::pow(static_cast<double>(numbers[i]), static_cast<double>(exponent));
      EXPECT_TRUE(this->is_close(z[i], want)) << numbers[i] << " ** " << exponent;
      EXPECT_TRUE(std::isnan(want) || std::signbit(z[i]) == std::signbit(want)) << numbers[i] << " ** " << exponent;
    }
  }
}

TYPED_TEST(FloatBlocks, GiveTheSameBitsAtEveryPlaceInABlock) {
  const std::vector<TypeParam> x = this->arguments();
  for (int f = 0; f <= static_cast<int>(UnaryFunction::floor); ++f) {
    const auto function = static_cast<UnaryFunction>(f);
    std::vector<TypeParam> together(lanes_per_block);
    apply_block(function, x.data(), together.data(), lanes_per_block);
    for (std::size_t i = 0; i < lanes_per_block; ++i) {
      TypeParam alone{};
      apply_block(function, x.data() + i, &alone, 1);
      EXPECT_TRUE(std::memcmp(&alone, &together[i], sizeof alone) == 0 || alone != alone)
          << name_of(function) << " of " << x[i] << ": " << alone << " and " << together[i];
    }
  }
}

/// Lengths with and without a rest after whole vectors.
TYPED_TEST(FloatBlocks, AreComputedInPlaceAsElsewhere) {
  const std::vector<TypeParam> a = this->arguments();
  const std::vector<TypeParam> b(a.rbegin(), a.rend());
  const auto expect_same = [](const std::vector<TypeParam>& in_place, const std::vector<TypeParam>& want) {
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_TRUE(same(static_cast<double>(in_place[i]), static_cast<double>(want[i]))) << i;
    }
  };
  for (const std::size_t n : {lanes_per_block, lanes_per_block - 13}) {
    const std::vector<TypeParam> x(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n));
    const std::vector<TypeParam> y(b.begin(), b.begin() + static_cast<std::ptrdiff_t>(n));
    std::vector<TypeParam> want(n);
    for (int f = 0; f <= static_cast<int>(UnaryFunction::floor); ++f) {
      std::vector<TypeParam> z = x;
      apply_block(static_cast<UnaryFunction>(f), x.data(), want.data(), n);
      apply_block(static_cast<UnaryFunction>(f), z.data(), z.data(), n);
      ASSERT_NO_FATAL_FAILURE(expect_same(z, want)) << name_of(static_cast<UnaryFunction>(f));
    }
    for (int f = 0; f <= static_cast<int>(BinaryFunction::minimum); ++f) {
      const auto function = static_cast<BinaryFunction>(f);
      if (is_comparison(function)) continue;
      std::vector<TypeParam> first = x;
      std::vector<TypeParam> second = y;
      apply_block(function, x.data(), y.data(), want.data(), n);
      apply_block(function, first.data(), y.data(), first.data(), n);
      apply_block(function, x.data(), second.data(), second.data(), n);
      ASSERT_NO_FATAL_FAILURE(expect_same(first, want)) << name_of(function);
      ASSERT_NO_FATAL_FAILURE(expect_same(second, want)) << name_of(function);
      if (function == BinaryFunction::power) continue;
      std::vector<TypeParam> third = x;
      apply_block(function, x.data(), TypeParam{3}, want.data(), n);
      apply_block(function, third.data(), TypeParam{3}, third.data(), n);
      ASSERT_NO_FATAL_FAILURE(expect_same(third, want)) << name_of(function);
    }
  }
}

TYPED_TEST(FloatBlocks, ComputeBinaryFunctionsAndComparisons) {
  const std::vector<TypeParam> all = this->arguments();
  std::vector<TypeParam> a;
  std::vector<TypeParam> b;
  for (std::size_t i = 0; a.size() < lanes_per_block; ++i) {
    a.push_back(all[(i * 7) % 23]);
    b.push_back(all[(i * 5) % 29]);
  }
  std::vector<TypeParam> z(a.size());
  std::vector<Truth> truth(a.size());
  for (int f = 0; f <= static_cast<int>(BinaryFunction::minimum); ++f) {
    const auto function = static_cast<BinaryFunction>(f);
    if (is_comparison(function)) {
      compare_block(function, a.data(), b.data(), truth.data(), a.size());
    } else {
      apply_block(function, a.data(), b.data(), z.data(), a.size());
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double want = apply(function, static_cast<double>(a[i]), static_cast<double>(b[i]));
      EXPECT_TRUE(is_comparison(function) ? static_cast<double>(truth[i]) == want : this->is_close(z[i], want))
          << a[i] << " " << name_of(function) << " " << b[i];
    }
  }
}

/// Of elements as they lie in an operand, in every mixture with other arguments.
TEST(NarrowBlocks, ComputeWhatTheirValuesDo) {
  constexpr std::size_t n = lanes_per_block - 3;
  std::vector<BFloat16> x;
  std::vector<BFloat16> y;
  std::vector<float> a;
  std::vector<float> b;
  for (std::uint32_t i = 0; i < n; ++i) {  // of every sign and exponent, infinite ones and no numbers among them
    x.push_back({static_cast<std::uint16_t>(i * 64 + i % 61)});
    y.push_back({static_cast<std::uint16_t>(i % 7 == 0 ? x.back().bits ^ 0x8000U : i * 4093)});
    a.push_back(to_float(x.back()));
    b.push_back(to_float(y.back()));
  }
  for (int f = 0; f <= static_cast<int>(BinaryFunction::minimum); ++f) {
    const auto function = static_cast<BinaryFunction>(f);
    if (is_comparison(function) || function == BinaryFunction::power) continue;
    const auto expect_right = [&](const std::vector<float>& z, const auto& left, const auto& right) {
      for (std::size_t i = 0; i < n; ++i) {
        const double want = apply(function, static_cast<double>(left(i)), static_cast<double>(right(i)));
        ASSERT_TRUE(same(static_cast<double>(z[i]), static_cast<double>(static_cast<float>(want))))
            << left(i) << " " << name_of(function) << " " << right(i) << " is not " << z[i];
      }
    };
    const auto of = [](const std::vector<float>& values) { return [&](std::size_t i) { return values[i]; }; };
    const auto three = [](std::size_t) { return 3.0F; };
    std::vector<float> z(n);
    apply_block(function, x.data(), y.data(), z.data(), n);
    expect_right(z, of(a), of(b));
    apply_block(function, x.data(), 3.0F, z.data(), n);
    expect_right(z, of(a), three);
    apply_block(function, 3.0F, x.data(), z.data(), n);
    expect_right(z, three, of(a));
    z = b;
    apply_block(function, x.data(), z.data(), z.data(), n);
    expect_right(z, of(a), of(b));
    z = b;
    apply_block(function, z.data(), x.data(), z.data(), n);
    expect_right(z, of(b), of(a));
  }
}

TEST(Ramps, CountByEveryStep) {
  for (const std::int64_t step : {0, 1, -1, 3, -1000}) {
    for (const std::size_t count : {1U, 15U, 16U, 17U, 63U, 512U}) {
      std::vector<std::int64_t> z(count);
      ramp_block(-7, step, z.data(), count);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(z[i], -7 + static_cast<std::int64_t>(i) * step) << i;
    }
  }
}

template <class T>
void expect_selects() {
  std::vector<Truth> c;
  std::vector<T> a;
  std::vector<T> b;
  for (int i = 0; i < 100; ++i) {
    c.push_back(i % 3 == 0 ? 0 : 1);
    a.push_back(static_cast<T>(std::is_same_v<T, Truth> ? i % 5 == 0 : i));
    b.push_back(static_cast<T>(std::is_same_v<T, Truth> ? i % 7 < 3 : -i - 1));
  }
  std::vector<T> z(c.size());
  select_block(c.data(), a.data(), b.data(), z.data(), z.size());
  for (std::size_t i = 0; i < z.size(); ++i) EXPECT_EQ(z[i], c[i] != 0 ? a[i] : b[i]);
}

TEST(Selecting, TakesTheFirstWhereTheConditionIsNotZero) {
  expect_selects<float>();
  expect_selects<double>();
  expect_selects<std::int64_t>();
  expect_selects<Truth>();
}

/// 77 numbers of either sign.
template <class T>
std::vector<T> some_numbers(int step) {
  std::vector<T> numbers;
  for (int i = 0; i < 77; ++i) numbers.push_back(static_cast<T>((i * step) % 41 - 20));
  return numbers;
}

template <class T>
void expect_selects_in_place() {
  std::vector<Truth> c;
  for (const int number : some_numbers<int>(5)) c.push_back(number > 3 ? 1 : 0);
  const std::vector<T> a = some_numbers<T>(7);
  const std::vector<T> b = some_numbers<T>(11);
  std::vector<T> want(a.size());
  select_block(c.data(), a.data(), b.data(), want.data(), want.size());
  std::vector<T> z = a;
  select_block(c.data(), z.data(), b.data(), z.data(), z.size());
  EXPECT_EQ(z, want);
  z = b;
  select_block(c.data(), a.data(), z.data(), z.data(), z.size());
  EXPECT_EQ(z, want);
}

TEST(Selecting, MayWriteOverWhatItChoosesFrom) {
  expect_selects_in_place<float>();
  expect_selects_in_place<double>();
  expect_selects_in_place<std::int64_t>();
}

TEST(IntegerBlocks, AreComputedInPlaceAsElsewhere) {
  const std::vector<std::int64_t> x = some_numbers<std::int64_t>(7);
  const std::vector<std::int64_t> y = some_numbers<std::int64_t>(11);
  std::vector<std::int64_t> want(x.size());
  for (int f = 0; f <= static_cast<int>(BinaryFunction::minimum); ++f) {
    const auto function = static_cast<BinaryFunction>(f);
    if (function == BinaryFunction::divide) continue;  // integers have none
    if (is_comparison(function)) continue;             // into truths
    const auto compute = [&](const std::int64_t* a, const std::int64_t* b, std::int64_t* z) {
      apply_block(function, a, b, z, x.size());
    };
    compute(x.data(), y.data(), want.data());
    std::vector<std::int64_t> first = x;
    compute(first.data(), y.data(), first.data());
    EXPECT_EQ(first, want) << name_of(function);
    std::vector<std::int64_t> second = y;
    compute(x.data(), second.data(), second.data());
    EXPECT_EQ(second, want) << name_of(function);
  }
  std::vector<std::int64_t> z = x;
  for (std::int64_t& value : z) value *= std::int64_t{1} << 30U;
  convert_block(DType::i32, z.data(), want.data(), z.size());
  convert_block(DType::i32, z.data(), z.data(), z.size());
  EXPECT_EQ(z, want);
}

TEST(IntegerBlocks, ComputeModulo64Bits) {
  constexpr std::int64_t low = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t high = std::numeric_limits<std::int64_t>::max();
  const std::array<std::int64_t, 11> numbers{0, 1, -1, 2, -2, 3, 63, -64, low, high, 0x123456789};
  using U = UnaryFunction;
  for (const auto function : {U::negate, U::abs, U::sq, U::relu, U::step, U::floor}) {
    std::array<std::int64_t, numbers.size()> z{};
    apply_block(function, numbers.data(), z.data(), z.size());
    for (std::size_t i = 0; i < z.size(); ++i) EXPECT_EQ(z[i], apply(function, numbers[i])) << name_of(function);
  }
  for (int f = 0; f <= static_cast<int>(BinaryFunction::minimum); ++f) {
    const auto function = static_cast<BinaryFunction>(f);
    if (function == BinaryFunction::divide) continue;  // integers have none
    for (const std::int64_t b : numbers) {
      std::array<std::int64_t, numbers.size()> bs{};
      bs.fill(b);
      std::array<std::int64_t, numbers.size()> z{};
      if (is_comparison(function)) {
        std::array<Truth, numbers.size()> truths{};
        compare_block(function, numbers.data(), bs.data(), truths.data(), z.size());
        std::copy(truths.begin(), truths.end(), z.begin());
      } else {
        apply_block(function, numbers.data(), bs.data(), z.data(), z.size());
      }
      for (std::size_t i = 0; i < z.size(); ++i) {
        EXPECT_EQ(z[i], apply(function, numbers[i], b)) << numbers[i] << " " << name_of(function) << " " << b;
      }
    }
  }
}

/// Every function that truths have, of lengths with and without a rest, also over an argument.
TEST(TruthBlocks, ComputeWhatIntegersDo) {
  for (const std::size_t n : {std::size_t{1}, std::size_t{63}, lanes_per_block, 4 * lanes_per_block - 5}) {
    std::vector<Truth> a;
    std::vector<Truth> b;
    for (std::size_t i = 0; i < n; ++i) {
      a.push_back(i % 3 == 0 ? 1 : 0);
      b.push_back(i % 7 < 4 ? 1 : 0);
    }
    for (int f = 0; f <= static_cast<int>(BinaryFunction::minimum); ++f) {
      const auto function = static_cast<BinaryFunction>(f);
      const auto compute = [&](const Truth* x, const Truth* y, Truth* z) {
        is_comparison(function) ? compare_block(function, x, y, z, n) : apply_block(function, x, y, z, n);
      };
      std::vector<Truth> z(n);
      if (!is_comparison(function) && kind_of(function) != BinaryKind::extreme) {
        EXPECT_THROW(compute(a.data(), b.data(), z.data()), Bug) << name_of(function);
        continue;
      }
      compute(a.data(), b.data(), z.data());
      std::vector<Truth> over = b;
      compute(a.data(), over.data(), over.data());
      EXPECT_EQ(over, z) << name_of(function);
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_EQ(z[i], apply(function, std::int64_t{a[i]}, std::int64_t{b[i]})) << name_of(function) << " at " << i;
      }
    }
  }
}

}  // namespace
}  // namespace einrel::test
