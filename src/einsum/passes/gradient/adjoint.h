#pragma once

#include <optional>
#include <vector>

#include "einsum/front/build/formula.h"

namespace einrel::gradient {

/// A condition of a where() and the side of it.
struct Side {
  build::Formula condition;
  bool holds = true;
  bool operator==(const Side&) const = default;
};

/// The adjoint of a value, what flows back from it: the derivative of what is differentiated by this value. Conditions,
/// the outermost first, stay around it until the end, so that nothing is computed on a side that is not taken: 0 * inf
/// would be NaN.
struct GuardedAdjoint {
  build::Formula value;
  std::vector<Side> sides;

  /// From now on only on this side, too. Many sides become one.
  void only_on(Side side);
};

/// An adjoint as one formula.
build::Formula formula_of(const GuardedAdjoint& adjoint);

/// A formula that is 0 where one of the sides is not taken; its value is not looked at there.
build::Formula only_on(const std::vector<Side>& sides, const build::Formula& value);

/// What flows back in two ways: their sum, on the sides that are taken by one of them.
GuardedAdjoint together(const GuardedAdjoint& a, const GuardedAdjoint& b);

/// As a bool.
build::Formula truth(bool value);

/// The bool that says whether all of these sides are taken. There is one at least.
build::Formula taken(const std::vector<Side>& sides);

}  // namespace einrel::gradient
