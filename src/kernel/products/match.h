#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <variant>

#include "einsum/graph/ein_graph.h"
#include "kernel/products/combination.h"

namespace einrel::contraction {

/// An EinSum recognised as Z = scale * reduce of join(X, Y) of two different operands, each perhaps with a factor.
struct Match {
  Combination combination;
  bool reduces = true;                    ///< else Z = X * Y, every one of them
  DType type = DType::f32;                ///< that join and reduce compute in: f32, f64, i32 or i64
  std::array<std::size_t, 2> operands{};  ///< positions in EinSum::operands
  std::array<double, 2> factors{1, 1};    ///< of a product of floats: (f * X) * (g * Y)
  double scale = 1;                       ///< of sums of floats: factors of the join, and 1 / count of a mean
};

/// The match, or why there is none: "it reduces by prod". `scalars` are the program's.
std::variant<Match, std::string> match(const EinSum& einsum, const ScalarBindings& scalars);

}  // namespace einrel::contraction
