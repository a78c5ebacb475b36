#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "einsum/expr/scalar_expr.h"
#include "export/array_library.h"

namespace einrel {

/// Where the values of a formula come from.
struct FormulaLeaves {
  std::function<PythonText(std::size_t operand)> operand;
  std::function<PythonText(std::size_t label)> position;  ///< i64, the label's positions in the whole tensor
  std::function<std::string(const std::string& name)> scalar;
  std::function<std::string(std::uint32_t number)> stream;  ///< of random numbers
};

/// A formula of arrays whose dimensions are aligned, as an array.
PythonText formula_text(const ScalarExpr& expr, const FormulaLeaves& leaves, const ArrayLibrary& library,
                        ModuleNeeds& needs);

}  // namespace einrel
