#include "kernel/elementwise/accumulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernel/elementwise/row_folds.h"
#include "support/compare.h"
#include "support/only_target.h"
#include "support/random_einsum.h"

namespace einrel::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

template <class T>
constexpr DType dtype_of = std::is_same_v<T, float>    ? DType::f32
                           : std::is_same_v<T, double> ? DType::f64
                                                       : DType::i64;

/// What a reduction has come to, as doubles: the test's integers are small.
std::vector<double> finished(Accumulators& accumulators, std::size_t lanes, std::int64_t count) {
  return std::visit([lanes](const auto* values) { return std::vector<double>(values, values + lanes); },
                    accumulators.finish({0, lanes}, count));
}

/// Reductions of the rows of a matrix of values: one lane per row.
template <class T>
struct Rows {
  Reducer reducer = Reducer::sum;
  std::size_t lanes = 1;
  std::vector<std::vector<T>> values;  ///< values[position][lane]

  Accumulators start() const {
    Accumulators accumulators(reducer, dtype_of<T>);
    accumulators.start({0, lanes});
    return accumulators;
  }
  /// Positions [begin, end) for all lanes at once.
  void add(Accumulators& accumulators, std::size_t begin, std::size_t end) const {
    for (std::size_t position = begin; position < end; ++position) {
      accumulators.add(values[position].data(), {0, lanes}, 1, static_cast<std::int64_t>(position));
    }
  }
  /// The same positions of one lane, in blocks, into lane 0.
  void fold(Accumulators& accumulators, std::size_t lane, std::size_t begin, std::size_t end) const {
    for (; begin < end; begin += lanes_per_block) {
      std::vector<T> block;
      for (std::size_t i = begin; i < std::min(begin + lanes_per_block, end); ++i) block.push_back(values[i][lane]);
      accumulators.fold(block.data(), {0, 1}, block.size(), static_cast<std::int64_t>(begin));
    }
  }
  std::vector<double> undivided() const {
    Accumulators accumulators = start();
    add(accumulators, 0, values.size());
    return finished(accumulators, lanes, static_cast<std::int64_t>(values.size()));
  }
};

/// The same reductions in pieces that end at `cuts` (ascending, the last one the end; equal ones make empty pieces).
template <class T>
std::vector<double> by_lanes(const Rows<T>& rows, const std::vector<std::size_t>& cuts) {
  Accumulators all = rows.start();
  std::size_t begin = 0;
  for (const std::size_t end : cuts) {
    Accumulators piece = rows.start();
    rows.add(piece, begin, end);
    std::vector<Accumulators::Partial> partials(rows.lanes);
    piece.store_partials({0, rows.lanes}, partials.data());
    all.combine({0, rows.lanes}, partials.data());
    begin = end;
  }
  return finished(all, rows.lanes, static_cast<std::int64_t>(rows.values.size()));
}
template <class T>
std::vector<double> by_folds(const Rows<T>& rows, const std::vector<std::size_t>& cuts) {
  std::vector<double> results;
  for (std::size_t lane = 0; lane < rows.lanes; ++lane) {
    Accumulators all(rows.reducer, dtype_of<T>);
    all.start({0, 1});
    std::size_t begin = 0;
    for (const std::size_t end : cuts) {
      Accumulators piece(rows.reducer, dtype_of<T>);
      piece.start({0, 1});
      rows.fold(piece, lane, begin, end);
      Accumulators::Partial partial;
      piece.store_partials({0, 1}, &partial);
      all.combine({0, 1}, &partial);
      begin = end;
    }
    results.push_back(finished(all, 1, static_cast<std::int64_t>(rows.values.size()))[0]);
  }
  return results;
}

/// Equal, or for reductions that round, nearly so.
void expect_same(Reducer reducer, const std::vector<double>& got, const std::vector<double>& want) {
  const bool rounds = reducer == Reducer::mean || reducer == Reducer::logsumexp || reducer == Reducer::prod;
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t lane = 0; lane < want.size(); ++lane) {
    const bool near = rounds && std::abs(got[lane] - want[lane]) <= 1e-12 * (1 + std::abs(want[lane]));
    ASSERT_TRUE(same(got[lane], want[lane]) || near)
        << name_of(reducer) << ", lane " << lane << ": got " << got[lane] << ", want " << want[lane];
  }
}

template <class T>
class Pieces : public testing::Test {
 protected:
  static std::vector<std::size_t> random_cuts(Random& random, std::size_t count) {
    std::vector<std::size_t> cuts{count};
    for (std::int64_t i = random.between(0, 6); i > 0; --i) {
      cuts.push_back(static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(count))));
    }
    std::sort(cuts.begin(), cuts.end());
    return cuts;
  }

  /// Few different values, so that extremes are tied, and now and then what only floats have.
  static T random_value(Random& random, bool specials) {
    if constexpr (std::is_floating_point_v<T>) {
      constexpr auto most = static_cast<double>(std::numeric_limits<T>::infinity());
      if (specials && random.chance(0.02)) {
        return static_cast<T>(random.one_of(std::array{nan, most, -most, -0.0}));
      }
      return static_cast<T>(0.5 * static_cast<double>(random.between(-4, 4)));
    } else {
      return static_cast<T>(random.between(-2, 2));
    }
  }
};

using ComputedTypes = testing::Types<float, double, std::int64_t>;
TYPED_TEST_SUITE(Pieces, ComputedTypes);

TYPED_TEST(Pieces, CombineToTheUndividedReduction) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    for (int r = 0; r <= static_cast<int>(Reducer::logsumexp); ++r) {
      Random random(seed);
      Rows<TypeParam> rows;
      rows.reducer = static_cast<Reducer>(r);
      rows.lanes = static_cast<std::size_t>(random.between(1, 5));
      const auto count = static_cast<std::size_t>(random.one_of(std::array{1, 2, 7, 63, 65, 600, 1200}));
      const bool specials = random.chance(0.4);
      for (std::size_t position = 0; position < count; ++position) {
        rows.values.emplace_back();
        for (std::size_t lane = 0; lane < rows.lanes; ++lane) {
          rows.values.back().push_back(this->random_value(random, specials));
        }
      }
      const std::vector<std::size_t> cuts = this->random_cuts(random, count);
      const std::vector<double> want = rows.undivided();
      ASSERT_NO_FATAL_FAILURE(expect_same(rows.reducer, by_lanes(rows, cuts), want)) << "seed " << seed;
      ASSERT_NO_FATAL_FAILURE(expect_same(rows.reducer, by_folds(rows, cuts), want)) << "seed " << seed;
    }
  }
}

/// The reduction of one row by hand, cut at every position, and with empty pieces around.
void expect_of_every_cut(Reducer reducer, const std::vector<double>& values, double want) {
  Rows<double> rows{reducer, 1, {}};
  for (const double value : values) rows.values.push_back({value});
  for (std::size_t cut = 0; cut <= values.size(); ++cut) {
    const std::vector<std::size_t> cuts{0, cut, cut, values.size(), values.size()};
    ASSERT_NO_FATAL_FAILURE(expect_same(reducer, by_lanes(rows, cuts), {want})) << "cut at " << cut;
    ASSERT_NO_FATAL_FAILURE(expect_same(reducer, by_folds(rows, cuts), {want})) << "cut at " << cut;
  }
}

TEST(Combining, KeepsTheFirstOfEqualExtremes) {
  expect_of_every_cut(Reducer::argmax, {1, 3, 2, 3, 3, 0}, 1);
  expect_of_every_cut(Reducer::argmin, {1, 3, 0, 3, 0, 0}, 2);
  expect_of_every_cut(Reducer::argmax, {-0.0, 0.0, -0.0}, 0);
  expect_of_every_cut(Reducer::argmin, {0.0, -0.0, 0.0}, 0);
}

TEST(Combining, KeepsTheFirstNaN) {
  expect_of_every_cut(Reducer::argmax, {1, infinity, nan, 7, nan, infinity}, 2);
  expect_of_every_cut(Reducer::argmin, {1, -infinity, nan, 7, nan, -infinity}, 2);
  for (const Reducer reducer :
       {Reducer::max, Reducer::min, Reducer::sum, Reducer::prod, Reducer::mean, Reducer::logsumexp}) {
    expect_of_every_cut(reducer, {1, 2, nan, 3, 4}, nan);
  }
}

TEST(Combining, KnowsInfinities) {
  expect_of_every_cut(Reducer::argmax, {-infinity, -infinity, -infinity}, 0);
  expect_of_every_cut(Reducer::argmin, {infinity, infinity, infinity}, 0);
  expect_of_every_cut(Reducer::argmax, {-infinity, -5, -infinity}, 1);
  expect_of_every_cut(Reducer::max, {-infinity, -infinity}, -infinity);
  expect_of_every_cut(Reducer::min, {infinity, infinity}, infinity);
  expect_of_every_cut(Reducer::sum, {1, infinity, 2}, infinity);
  expect_of_every_cut(Reducer::sum, {1, infinity, 2, -infinity}, nan);
  expect_of_every_cut(Reducer::prod, {2, infinity, 3, 0}, nan);
  expect_of_every_cut(Reducer::logsumexp, {-infinity, -infinity}, -infinity);
  expect_of_every_cut(Reducer::logsumexp, {1, infinity, 2, infinity}, infinity);
  expect_of_every_cut(Reducer::logsumexp, {-infinity, 3, -infinity}, 3);
  expect_of_every_cut(Reducer::logsumexp, {infinity, -infinity}, infinity);
}

TEST(Combining, DoesNotOverflowExponentials) {
  expect_of_every_cut(Reducer::logsumexp, {1000, -1000, 1000, 999}, 1000 + std::log(2 + std::exp(-1)));
  expect_of_every_cut(Reducer::logsumexp, {-1000, -1000, -1001}, -1000 + std::log(2 + std::exp(-1)));
}

TEST(Combining, AddsUpTruth) {
  expect_of_every_cut(Reducer::any, {0, 0, 0, 0}, 0);
  expect_of_every_cut(Reducer::any, {0, 0, nan, 0}, 1);
  expect_of_every_cut(Reducer::any, {0, -0.5, 0, 0}, 1);
  expect_of_every_cut(Reducer::all, {1, 2, nan, -0.5}, 1);
  expect_of_every_cut(Reducer::all, {1, 2, -0.0, 3}, 0);
}

TEST(Combining, ReducesNothingAsTheAlgebraSays) {
  expect_of_every_cut(Reducer::sum, {}, 0);
  expect_of_every_cut(Reducer::prod, {}, 1);
  expect_of_every_cut(Reducer::any, {}, 0);
  expect_of_every_cut(Reducer::all, {}, 1);
  expect_of_every_cut(Reducer::logsumexp, {}, -infinity);
  expect_of_every_cut(Reducer::mean, {}, nan);
}

template <class T>
void expect_found(std::size_t length) {
  const T none = std::numeric_limits<T>::quiet_NaN();
  std::vector<T> values(length, T{1});
  EXPECT_EQ(first_in_row(values.data(), length, T{2}), length);
  EXPECT_EQ(first_in_row(values.data(), length, none), length);
  for (std::size_t at = length; at-- > 0;) {  // those behind are there already
    values[at] = -T{0};
    ASSERT_EQ(first_in_row(values.data(), length, T{0}), at) << "of " << length;
  }
  for (std::size_t at = length; at-- > 0;) {
    values[at] = none;
    ASSERT_EQ(first_in_row(values.data(), length, none), at) << "of " << length;
    ASSERT_EQ(first_in_row(values.data(), length, T{0}), at == 0 ? length : 0) << "of " << length;
  }
}

TEST(FirstInRow, IsFoundOnEveryInstructionSetAtEveryPlace) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const OnlyTarget only(target);
    for (const std::size_t length : {1U, 3U, 15U, 16U, 31U, 32U, 63U, 64U, 65U, 127U, 128U, 200U}) {
      expect_found<float>(length);
      expect_found<double>(length);
      if (testing::Test::HasFatalFailure()) FAIL() << "on " << hwy::TargetName(target);
    }
  }
}

}  // namespace
}  // namespace einrel::test
