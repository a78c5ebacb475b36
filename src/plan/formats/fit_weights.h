#pragma once

#include <cstddef>
#include <vector>

#include "plan/formats/format_cost.h"

namespace einrel {

/// A query that was run.
struct MeasuredCost {
  FormatCost cost;
  double seconds = 0;
};

/// Weights, and how well they say what was measured.
struct FittedWeights {
  FormatWeights weights;
  /// Of the logarithms of seconds: 1 where all are predicted exactly, 0 where the mean would do as well.
  double r_squared = 0;
  std::size_t worst = 0;  ///< the measurement from which the prediction is farthest, as a factor
};

/// The weights, none below 0, of least squares of relative errors, where too much counts as much as too little: the sum
/// of (predicted - measured)^2 / (predicted * measured), by least squares again and again, with the predictions of the
/// round before in the denominator. So a query of a millisecond counts as much as one of a second ("Automatic Matrix
/// Format Exploration", chapter 10, has one regression over queries of like sizes). A component that no query has keeps
/// its weight in `before`. All seconds are above 0. O(measurements).
FittedWeights fit_weights(const std::vector<MeasuredCost>& measured, const FormatWeights& before);

}  // namespace einrel
