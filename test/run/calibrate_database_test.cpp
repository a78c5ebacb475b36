#include "run/calibrate_database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "run/database_weights.h"

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

std::string refusal(const std::function<std::vector<MeasuredQuery>()>& measure) {
  try {
    believed_weights(measure, {});
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

TEST(CalibrationOfADatabase, SaysWhatItMeasuredWhereTimesFollowFromNothing) {
  unsigned rounds = 0;
  EXPECT_THAT(refusal([&] { return busy_queries(++rounds); }),
              testing::MatchesRegex("60 queries were measured 2 times, and still R\\^2 is -?0\\.[0-9]+, below 0.7: .*"
                                    "The weights stay as they were; try again when less runs on the machine"));
  EXPECT_EQ(rounds, 2U);
}

TEST(CalibrationOfADatabase, DoesNotBelieveThatSomethingTakesNoTime) {
  FormatWeights weights;
  weights.piece = 0;
  weights.stored_byte = 0;
  std::vector<MeasuredQuery> queries = exact_queries();
  for (MeasuredQuery& query : queries) query.measured.seconds = seconds_of(query.measured.cost, weights);
  EXPECT_EQ(refusal([&] { return queries; }),
            "60 queries were measured 2 times, and still these seem to take no time: a piece, a stored byte. The "
            "weights stay as they were; try again when less runs on the machine");
}

/// Settings in a folder of their own.
class OwnSettings {
 public:
  OwnSettings() { setenv("XDG_CONFIG_HOME", folder_.path().c_str(), 1); }
  OwnSettings(const OwnSettings&) = delete;
  OwnSettings& operator=(const OwnSettings&) = delete;
  ~OwnSettings() { unsetenv("XDG_CONFIG_HOME"); }

 private:
  TemporaryFolder folder_;
};

TEST(KeptWeights, AreThoseThatFormatsAreChosenByFromThenOn) {
  const OwnSettings settings;
  const BelievedWeights found = believed_weights(exact_queries, {});
  EXPECT_THAT(keep_weights("sqlite", found, 12),
              testing::AllOf(testing::HasSubstr("measured 60 queries in 12 s"), testing::HasSubstr("R^2 1.000"),
                             testing::HasSubstr("databases.json"), testing::HasSubstr("formats for sqlite")));
  EXPECT_EQ(weights_for("sqlite", sql::Dialect::sqlite), found.fitted.weights);
  EXPECT_EQ(weights_for("postgresql a:1", sql::Dialect::postgres), assumed_weights(sql::Dialect::postgres));
}

TEST(KeptWeights, StandBesideThoseOfOtherServersAndInPlaceOfEarlierOnes) {
  const OwnSettings settings;
  BelievedWeights found = believed_weights(exact_queries, {});
  for (const char* server : {"postgresql a:1", "sqlite", "postgresql a:1"}) {
    found.fitted.weights.tuple *= 2;
    keep_weights(server, found, 1);
  }
  const double first = found.fitted.weights.tuple / 8;
  EXPECT_EQ(weights_for("sqlite", sql::Dialect::sqlite).tuple, 4 * first);
  EXPECT_EQ(weights_for("postgresql a:1", sql::Dialect::postgres).tuple, 8 * first);
  EXPECT_EQ(calibrated_databases().size(), 2U);
}

}  // namespace
}  // namespace einrel::test
