#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "einsum/graph/ein_graph.h"

namespace einrel {

/// coefficient * the element that `operand` reads, a whole number; or instead of that element an i32 that is computed
/// of some: T[s] + 1 in i32 wraps.
struct ElementTerm {
  std::int64_t coefficient = 1;
  std::size_t operand = 0;
  std::optional<ScalarExpr> computed = std::nullopt;
  bool operator==(const ElementTerm&) const = default;
};

/// offset + sum of coefficient * label + sum of coefficient * element, modulo 2^64.
struct SelectingForm {
  Index labels;
  std::vector<ElementTerm> elements;
};

/// A label that need not be looped over: it counts at one position only, the form of others, and nowhere where this is
/// outside of [0, its extent).
struct Selection {
  std::size_t label = 0;
  SelectingForm position;
};

/// A body as a value that counts where equations hold, and is 0 elsewhere:
///   sum[v] where(v == T[s], E[v,d], 0)                 v at T[s]: a gather
///   sum[s] where(v == T[s], X[s,d], 0)                 v at T[s]: a scatter, since v is in the output
///   sum[y,k] where(x == 2*y + k, G[y] * K[k], 0)       x at 2*y + k: a transposed window
/// The equations may stand in where(..., 0), in products of comparisons, and in factors that are casts of them; the
/// order of their sides does not matter. Where a kernel is cut out of one of these, positions begin at an element
/// without labels: v + B[] == T[s].
struct Selected {
  std::vector<Selection> selections;  ///< no form reads a label of these
  ScalarExpr value;                   ///< of the same operands and labels
};

/// Nothing where no label is selected, or unless the vertex reduces by what begins with 0: sum, or any. A factor of 0
/// counts as 0 whatever it is multiplied with: infinity, too. Microseconds: bodies of more than 256 steps are not
/// looked at.
std::optional<Selected> selected(const EinSum& einsum);

/// A number that kernels add up as it is: exact as a double.
bool is_addend(const Constant& number);

/// Why no kernel computes a vertex by loops over its other labels alone; "" where one does: of one element of the
/// result's dtype (f32: of bf16 and f16, too), or of one number; sums are not of bools and not in a narrow dtype; what
/// says positions is no computed i32.
/// Operands have these `dtypes`.
std::string not_selected_as_it_is(const EinSum& einsum, const Selected& found, const std::vector<DType>& dtypes,
                                  DType result);

}  // namespace einrel
