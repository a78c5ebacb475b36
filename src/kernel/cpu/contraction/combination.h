#pragma once

#include <cstdint>

namespace einrel::contraction {

/// What is computed of each pair of operand values. All are symmetric: join(x, y) = join(y, x).
enum class Join : std::uint8_t { multiply, add, square_difference, absolute_difference, maximum, minimum };

/// What is computed of all joined values of one output element.
enum class Reduce : std::uint8_t { sum, max, min };

/// Z = reduce over the inner loops of join(A, B).
struct Combination {
  Join join = Join::multiply;
  Reduce reduce = Reduce::sum;
  bool operator==(const Combination&) const = default;
};

}  // namespace einrel::contraction
