#pragma once

#include <cstddef>
#include <vector>

#include "einsum/expr/scalar_expr.h"

namespace einrel::sql {

/// For each of so many operands, whether the body is zero wherever the operand is, as x is of where(x > 0, x * y, 0).
/// A factor of 0 counts as 0 whatever it is multiplied with: infinity and NaN, too. O(steps * operands).
std::vector<bool> zero_factors(const ScalarExpr& body, std::size_t operands);

}  // namespace einrel::sql
