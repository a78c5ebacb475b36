#include "kernel/elementwise/softmax_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "support/compare.h"
#include "support/only_target.h"

namespace einrel::test {
namespace {

template <class T>
class SoftmaxOfRows : public testing::Test {
 protected:
  using Limits = std::numeric_limits<T>;

  /// Rows with what is special in some of them, and numbers of every size.
  static std::vector<T> random_rows(std::size_t count, std::size_t length, std::size_t step) {
    std::mt19937 random(static_cast<unsigned>(count * 1000 + length));
    std::vector<T> rows(count * step, 77);
    for (std::size_t r = 0; r < count; ++r) {
      std::normal_distribution<T> normal(0, std::vector<T>{1, 30, T(1e-4), 200}[r % 4]);
      T* const row = rows.data() + r * step;
      std::generate_n(row, length, [&] { return normal(random); });
      const std::size_t at = random() % length;
      switch (r) {
        case 3: row[at] = -Limits::infinity(); break;
        case 4: row[at] = Limits::infinity(); break;
        case 5: row[at] = Limits::quiet_NaN(); break;
        case 6: std::fill_n(row, length, -Limits::infinity()); break;
        case 7: std::fill_n(row, length, Limits::lowest()); break;
        default: break;
      }
    }
    return rows;
  }

  /// By the definition, with differences as they round in T.
  static std::vector<double> softmax_of(const T* row, std::size_t length, bool has_nothing) {
    const bool is_nothing = std::count(row, row + length, -Limits::infinity()) == static_cast<std::ptrdiff_t>(length);
    if (has_nothing && is_nothing) return std::vector<double>(length);
    const bool has_nan = std::any_of(row, row + length, [](T x) { return std::isnan(x); });
    const T largest = has_nan ? Limits::quiet_NaN() : *std::max_element(row, row + length);
    std::vector<double> e(length);
    std::transform(row, row + length, e.begin(), [&](T x) { return std::exp(static_cast<double>(x - largest)); });
    const auto sum = static_cast<double>(std::accumulate(e.begin(), e.end(), 0.0L));
    for (double& x : e) x /= sum;
    return e;
  }

  static void expect_right(std::size_t count, std::size_t length, std::size_t gap, bool streams) {
    for (const bool has_nothing : {false, true}) expect_right_rows(count, length, gap, streams, has_nothing);
  }

  static void expect_right_rows(std::size_t count, std::size_t length, std::size_t gap, bool streams,
                                bool has_nothing) {
    constexpr std::size_t before = 3;  // the result does not begin at a line of the cache
    const std::size_t step = length + gap;
    const std::vector<T> from = random_rows(count, length, step);
    std::vector<T> to(before + count * step, 55);
    std::vector<T> workspace(softmax_workspace(length));
    const auto signed_step = static_cast<std::int64_t>(step);
    const std::size_t block = length <= 512 ? length : 512;
    softmax_rows({count, length, signed_step, signed_step, block, streams, has_nothing}, from.data(),
                 to.data() + before, workspace.data());
    for (std::size_t i = 0; i < before; ++i) ASSERT_EQ(to[i], 55);
    for (std::size_t r = 0; r < count; ++r) {
      const std::vector<double> want = softmax_of(from.data() + r * step, length, has_nothing);
      const T* const got = to.data() + before + r * step;
      for (std::size_t i = 0; i < length; ++i) {
        const double allowed =
            8 * static_cast<double>(Limits::epsilon()) * want[i] + static_cast<double>(Limits::min());
        ASSERT_TRUE(same(static_cast<double>(got[i]), want[i]) ||
                    std::abs(static_cast<double>(got[i]) - want[i]) <= allowed)
            << "row " << r << " of " << count << ", element " << i << " of " << length << ": got " << got[i]
            << ", want " << want[i];
      }
      for (std::size_t i = length; i < step; ++i) ASSERT_EQ(got[i], 55) << "behind row " << r;
    }
  }
};

using FloatTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(SoftmaxOfRows, FloatTypes);

TYPED_TEST(SoftmaxOfRows, IsRightOnEveryInstructionSet) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const OnlyTarget only(target);
    for (const std::size_t length :
         std::vector<std::size_t>{1, 2, 15, 16, 17, 31, 32, 33, 64, 100, 511, 513, 1000, 1024, 2050}) {
      for (const std::size_t count : {1U, 2U, 3U, 9U}) {
        for (const std::size_t gap : {0U, 5U}) {
          this->expect_right(count, length, gap, false);
          this->expect_right(count, length, gap, true);
          if (testing::Test::HasFatalFailure()) FAIL() << "on " << hwy::TargetName(target);
        }
      }
    }
  }
}

}  // namespace
}  // namespace einrel::test
