#pragma once

#include <vector>

#include "einsum/graph/ein_graph.h"

namespace einrel::gradient {

/// What is easily seen of the signs of values.
class Signs {
 public:
  /// O(steps of all vertices).
  explicit Signs(const EinGraph& graph);

  struct OfSteps {
    /// Sums of squares, with factors and in shares that are not negative: sq(x) + 2 * sq(y), or mean[i] sq(X[i]), also
    /// in vertices of their own.
    std::vector<bool> add_squares;
    /// Above 0: squares and a positive number, or a tensor that sums exponentials, with a bool added or without: the
    /// divisor of a softmax.
    std::vector<bool> are_positive;
  };
  /// Of each step of an EinSum that reads vertices of the graph. O(steps).
  OfSteps of_steps(const Vertex& vertex) const;

 private:
  std::vector<bool> add_squares_;  ///< per vertex
  std::vector<bool> add_exponentials_;
};

}  // namespace einrel::gradient
