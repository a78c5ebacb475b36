#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "einsum/expr/scalar_expr.h"

namespace einrel::lowering {

/// What becomes of parts of a body, each a whole subexpression.
struct PartUse {
  /// Which relation an operand reads.
  std::function<std::size_t(std::size_t operand)> source_of;
  /// Lets parts that are to become one array read what that array cannot be without; returns whether they read more
  /// than before.
  std::function<bool(std::vector<ScalarExpr>& parts)> complete;
  /// Makes one array of them. For each part, the steps that read it there, as one operand.
  std::function<std::vector<std::vector<ScalarStep>>(const std::vector<ScalarExpr>& parts)> make;
};

/// The body over two relations at most. What it cannot have beside others becomes an array of its own: one
/// subexpression that reads exactly two relations; or, where there is none, the condition and the first value of
/// where(c, a, b) over three, which become one array together. O(steps), as each part is moved a few times at most.
ScalarExpr over_two_relations(const ScalarExpr& body, const PartUse& use);

/// The value of an operand; the step's type is given, for operands arrive in their compute type.
ScalarStep operand_step(std::size_t operand, DType type);
/// A number, as a step of that type leaves it: rounded, saturated or made 0 or 1.
ScalarStep number_step(double value, DType type);

}  // namespace einrel::lowering
