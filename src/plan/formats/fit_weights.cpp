#include "plan/formats/fit_weights.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace einrel {
namespace {

constexpr std::size_t components = format_components.size();
using Row = std::array<double, components>;

/// The x >= 0 of least squares |A x - b|, of A'A and A'b, by coordinates one after the other: the sum is convex, so
/// that this ends at the least.
Row least_squares(const std::array<Row, components>& products, const Row& targets, Row x) {
  constexpr int most_rounds = 10'000;
  constexpr double enough = 1e-12;
  for (int round = 0; round < most_rounds; ++round) {
    double change = 0;
    double size = 0;
    for (std::size_t c = 0; c < components; ++c) {
      if (products[c][c] == 0) continue;
      double rest = targets[c];
      for (std::size_t other = 0; other < components; ++other) rest -= products[c][other] * x[other];
      const double next = std::max(0.0, x[c] + rest / products[c][c]);
      change = std::max(change, std::abs(next - x[c]));
      size = std::max(size, next);
      x[c] = next;
    }
    if (change <= enough * size) break;
  }
  return x;
}

/// One round: least squares where measurement m counts as 1 / (predicted * measured) says. Columns are scaled to length
/// 1, so that seconds of an operation and of a tuple converge alike.
void refit(const std::vector<MeasuredCost>& measured, const std::vector<double>& predicted, FormatWeights& weights) {
  std::vector<Row> rows;
  Row lengths{};
  for (std::size_t m = 0; m < measured.size(); ++m) {
    const double factor = 1 / std::sqrt(predicted[m] * measured[m].seconds);
    rows.emplace_back();
    for (std::size_t c = 0; c < components; ++c) {
      rows.back()[c] = measured[m].cost.*format_components[c].count * factor;
      lengths[c] += rows.back()[c] * rows.back()[c];
    }
  }
  for (double& length : lengths) length = std::sqrt(length);
  std::array<Row, components> products{};
  Row targets{};
  Row scaled{};
  for (std::size_t m = 0; m < measured.size(); ++m) {
    Row& row = rows[m];
    for (std::size_t c = 0; c < components; ++c) row[c] = lengths[c] > 0 ? row[c] / lengths[c] : 0;
    const double target = measured[m].seconds / std::sqrt(predicted[m] * measured[m].seconds);
    for (std::size_t c = 0; c < components; ++c) {
      targets[c] += row[c] * target;
      for (std::size_t other = 0; other < components; ++other) products[c][other] += row[c] * row[other];
    }
  }
  for (std::size_t c = 0; c < components; ++c) scaled[c] = weights.*format_components[c].weight * lengths[c];
  scaled = least_squares(products, targets, scaled);
  for (std::size_t c = 0; c < components; ++c) {
    if (lengths[c] > 0) weights.*format_components[c].weight = scaled[c] / lengths[c];
  }
}

/// A prediction of nothing is wrong by a finite factor.
double predicted_seconds(const FormatCost& cost, const FormatWeights& weights) {
  constexpr double least = 1e-12;
  return std::max(seconds_of(cost, weights), least);
}

void judge(FittedWeights& fitted, const std::vector<MeasuredCost>& measured) {
  double mean = 0;
  for (const MeasuredCost& one : measured) mean += std::log(one.seconds) / static_cast<double>(measured.size());
  double missed = 0;
  double spread = 0;
  double farthest = -1;
  for (std::size_t m = 0; m < measured.size(); ++m) {
    const double error = std::abs(std::log(predicted_seconds(measured[m].cost, fitted.weights) / measured[m].seconds));
    missed += error * error;
    spread += std::pow(std::log(measured[m].seconds) - mean, 2);
    if (error <= farthest) continue;
    farthest = error;
    fitted.worst = m;
  }
  fitted.r_squared = spread > 0 ? 1 - missed / spread : 0;
}

}  // namespace

FittedWeights fit_weights(const std::vector<MeasuredCost>& measured, const FormatWeights& before) {
  constexpr int rounds = 50;
  std::vector<double> predicted;
  for (const MeasuredCost& one : measured) {
    invariant(one.seconds > 0, "a query takes time");
    predicted.push_back(one.seconds);
  }
  FittedWeights fitted{before};
  for (int round = 0; round < rounds; ++round) {
    refit(measured, predicted, fitted.weights);
    for (std::size_t m = 0; m < measured.size(); ++m)
      predicted[m] = predicted_seconds(measured[m].cost, fitted.weights);
  }
  judge(fitted, measured);
  return fitted;
}

}  // namespace einrel
