// Weights of the cost of formats from measurements that are made up of known weights.
#include "plan/formats/fit_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace einrel::test {
namespace {

constexpr FormatWeights known{.operation = 3e-11,
                              .network_byte = 2e-9,
                              .tuple = 4e-5,
                              .read_byte = 3e-9,
                              .intermediate_byte = 7e-10,
                              .statement = 2e-4,
                              .piece = 2e-6,
                              .stored_byte = 5e-9};

/// Queries of all sizes, as long as known weights say, times e^noise.
std::vector<MeasuredCost> made_up(std::size_t queries, double noise, bool has_network = true) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> real;
  std::normal_distribution<double> normal(0, 1);
  const auto scale = [&](double least, double orders) { return least * std::pow(10, orders * real(random)); };
  std::vector<MeasuredCost> measured;
  for (std::size_t q = 0; q < queries; ++q) {
    const bool is_transformation = q % 3 == 0;
    FormatCost cost{.compute = is_transformation ? 0 : scale(1e5, 5),
                    .network = has_network ? scale(1e4, 4) : 0,
                    .tuples = is_transformation ? 0 : scale(1, 4),
                    .read = scale(1e5, 4),
                    .intermediate = scale(1e5, 4),
                    .statements = 1 + std::floor(4 * real(random)),
                    .pieces = is_transformation ? scale(1, 4) : 0,
                    .stored = scale(1e4, 4)};
    measured.push_back({cost, seconds_of(cost, known) * std::exp(noise * normal(random))});
  }
  return measured;
}

void expect_near(const FormatWeights& found, const FormatWeights& wanted, double relative) {
  EXPECT_NEAR(found.operation, wanted.operation, relative * wanted.operation);
  EXPECT_NEAR(found.network_byte, wanted.network_byte, relative * wanted.network_byte);
  EXPECT_NEAR(found.tuple, wanted.tuple, relative * wanted.tuple);
  EXPECT_NEAR(found.read_byte, wanted.read_byte, relative * wanted.read_byte);
  EXPECT_NEAR(found.intermediate_byte, wanted.intermediate_byte, relative * wanted.intermediate_byte);
  EXPECT_NEAR(found.statement, wanted.statement, relative * wanted.statement);
  EXPECT_NEAR(found.piece, wanted.piece, relative * wanted.piece);
  EXPECT_NEAR(found.stored_byte, wanted.stored_byte, relative * wanted.stored_byte);
}

TEST(FitWeights, FindsTheWeightsThatMeasurementsWereMadeOf) {
  const FittedWeights exact = fit_weights(made_up(45, 0), {});
  expect_near(exact.weights, known, 1e-6);
  EXPECT_NEAR(exact.r_squared, 1, 1e-9);
}

TEST(FitWeights, FindsThemUnderNoise) {
  const FittedWeights noisy = fit_weights(made_up(2000, 0.1), {});
  expect_near(noisy.weights, known, 0.3);
  EXPECT_GT(noisy.r_squared, 0.9);
  EXPECT_LT(noisy.r_squared, 1);
}

TEST(FitWeights, AreNeverBelowZero) {
  std::vector<MeasuredCost> measured = made_up(45, 0);
  for (MeasuredCost& one : measured)  // operations seem to save time
    one.seconds = std::max(one.seconds - one.cost.compute * known.operation * 1.5, 1e-9);
  const FittedWeights fitted = fit_weights(measured, {});
  for (const double weight :
       {fitted.weights.operation, fitted.weights.network_byte, fitted.weights.tuple, fitted.weights.read_byte,
        fitted.weights.intermediate_byte, fitted.weights.statement, fitted.weights.piece, fitted.weights.stored_byte})
    EXPECT_GE(weight, 0);
}

TEST(FitWeights, OfWhatNoQueryHasStayAsTheyWere) {
  const FormatWeights before{.workers = 3, .network_byte = 0.125};
  const FittedWeights fitted = fit_weights(made_up(45, 0, false), before);
  FormatWeights wanted = known;
  wanted.network_byte = before.network_byte;
  expect_near(fitted.weights, wanted, 1e-6);
  EXPECT_EQ(fitted.weights.network_byte, before.network_byte);
  EXPECT_EQ(fitted.weights.workers, before.workers);
}

TEST(FitWeights, NameTheMeasurementThatTheyMissMost) {
  std::vector<MeasuredCost> measured = made_up(400, 0.05);
  measured[17].seconds *= 20;
  EXPECT_EQ(fit_weights(measured, {}).worst, 17U);
  measured[17].seconds /= 400;
  EXPECT_EQ(fit_weights(measured, {}).worst, 17U);
}

}  // namespace
}  // namespace einrel::test
