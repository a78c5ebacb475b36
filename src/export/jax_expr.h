#pragma once

#include <functional>
#include <string>
#include <vector>

#include "einsum/expr/scalar_expr.h"

namespace einrel {

/// Where the values of a formula come from, as text of Python.
struct JaxLeaves {
  std::function<std::string(std::size_t operand)> operand;
  std::function<std::string(std::size_t label)> position;  ///< i64, the label's positions in the whole tensor
  std::function<std::string(const std::string& name)> scalar;
};

/// Which helpers of the module a formula calls.
struct JaxHelpers {
  bool positions = false;
  bool read = false;
  bool precision = false;
  bool half = false;
  bool uniform = false;
  bool normal = false;
  bool to_integer = false;
  bool whole_power = false;
};

/// A formula with jax.numpy, of arrays whose dimensions are aligned; in parentheses wherever an operator could follow.
std::string jax_formula(const ScalarExpr& expr, const JaxLeaves& leaves, JaxHelpers& helpers);

/// In the same type, rounded to what `to`, bf16 or f16, can hold. (XLA may leave out a cast there and back.)
std::string jax_rounded(const std::string& values, DType to, JaxHelpers& helpers);

/// "jnp.float32"
std::string jax_type(DType type);

}  // namespace einrel
