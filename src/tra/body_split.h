#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "einsum/scalar_expr.h"

namespace einrel::lowering {

/// Steps `first` to `last` of a body: one whole subexpression, whose value `last` leaves.
struct Subexpression {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// What must become an array of its own so that a body over more than two relations comes closer to two:
/// one subexpression that reads exactly two relations; or, where there is none, the condition and the first value of
/// where(c, a, b) over three, which become one array together.
struct Split {
  Subexpression first;
  std::optional<Subexpression> second;
};

/// nullopt when the body reads at most two. `source_of[operand]` says which relation an operand reads. Replacing what
/// it finds again and again ends: every step of the body is replaced once at most. O(steps * relations).
std::optional<Split> find_split(const ScalarExpr& body, const std::vector<std::size_t>& source_of);

/// The subexpression as a body.
ScalarExpr steps_of(const ScalarExpr& body, Subexpression part);
/// `body` with other steps in the place of a subexpression.
ScalarExpr with_replaced(const ScalarExpr& body, Subexpression part, const std::vector<ScalarStep>& steps);

/// The value of an operand; the step's type is given, for operands arrive in their compute type.
ScalarStep operand_step(std::size_t operand, DType type);
/// A number, as a step of that type leaves it: rounded, saturated or made 0 or 1.
ScalarStep number_step(double value, DType type);

}  // namespace einrel::lowering
