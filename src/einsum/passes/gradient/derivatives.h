#pragma once

#include <optional>
#include <vector>

#include "einsum/expr/scalar_expr.h"
#include "einsum/front/build/formula.h"
#include "einsum/passes/gradient/adjoint.h"

namespace einrel::gradient {

/// One step of a scalar expression, as formulas of its arguments and of its value.
struct StepFormulas {
  const ScalarStep& step;
  std::vector<build::Formula> arguments;
  build::Formula value;
  /// The argument is a sum of squares: the derivative of its root at 0 is 0, so that of a norm.
  bool is_of_squares = false;
  /// The last argument is above 0: a sum of squares and of a positive number, or the divisor of a softmax.
  bool is_positive = false;
};

/// What flows back from a step to each of its arguments; nothing where the derivative is 0 everywhere. The table of
/// docs/language.md, "Gradients", says what it is at kinks.
std::vector<std::optional<GuardedAdjoint>> adjoints_of_arguments(const StepFormulas& of, const GuardedAdjoint& adjoint);

}  // namespace einrel::gradient
