#include "engine/calibrate_database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"

namespace einrel::test {
namespace {

/// Queries that take what some weights say.
std::vector<MeasuredQuery> exact_queries() {
  std::mt19937 random(7);
  const auto some = [&](double most) { return most * std::uniform_real_distribution<>(0, 1)(random); };
  std::vector<MeasuredQuery> queries;
  for (int q = 0; q < 60; ++q) {
    FormatCost cost;
    cost.compute = some(1e9);
    cost.tuples = some(1e3);
    cost.read = some(1e8);
    cost.intermediate = some(1e7);
    cost.statements = 1;
    cost.pieces = some(1e4);
    cost.stored = some(1e8);
    queries.push_back({"", {cost, seconds_of(cost, {})}});
  }
  return queries;
}

/// The same while something else keeps the machine busy, now and then.
std::vector<MeasuredQuery> busy_queries(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<MeasuredQuery> queries = exact_queries();
  for (MeasuredQuery& query : queries)
    query.measured.seconds *= std::exp(8 * std::uniform_real_distribution<>(0, 1)(random));
  return queries;
}

TEST(CalibrationOfADatabase, MeasuresOnceWhereTheWeightsSayWhatWasMeasured) {
  int rounds = 0;
  const BelievedWeights found = believed_weights(
      [&] {
        ++rounds;
        return exact_queries();
      },
      {});
  EXPECT_EQ(rounds, 1);
  EXPECT_NEAR(found.fitted.r_squared, 1, 1e-6);
  EXPECT_NEAR(found.fitted.weights.tuple, FormatWeights().tuple, 1e-3 * FormatWeights().tuple);
}

TEST(CalibrationOfADatabase, MeasuresAgainWhereItWasDisturbedAndTakesTheLessOfTheTimes) {
  int rounds = 0;
  const BelievedWeights found = believed_weights([&] { return ++rounds == 1 ? busy_queries(1) : exact_queries(); }, {});
  EXPECT_EQ(rounds, 2);
  EXPECT_NEAR(found.fitted.r_squared, 1, 1e-6);
}

TEST(CalibrationOfADatabase, SaysThatTheMachineIsBusyWhereNoRoundHelps) {
  unsigned rounds = 0;
  try {
    believed_weights([&] { return busy_queries(++rounds); }, {});
    FAIL();
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("too busy to be measured"),
                                             testing::HasSubstr("the weights stay as they were")));
  }
  EXPECT_EQ(rounds, 2U);
}

TEST(CalibrationOfADatabase, DoesNotBelieveThatSomethingTakesNoTime) {
  const auto free_pieces = [] {
    std::vector<MeasuredQuery> queries = exact_queries();
    FormatWeights weights;
    weights.piece = 0;
    for (MeasuredQuery& query : queries) query.measured.seconds = seconds_of(query.measured.cost, weights);
    return queries;
  };
  try {
    believed_weights(free_pieces, {});
    FAIL();
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("a piece seems to take no time"));
  }
}

}  // namespace
}  // namespace einrel::test
