#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tra/kernel.h"

namespace einrel {

/// How values are reduced in parts: each part by itself, what comes of that folded into one, and this finished.
struct PartialReduction {
  Reducer each{};   ///< within a part
  ScalarExpr body;  ///< the values
  DType dtype{};    ///< of a partial result: rounded to a narrow type once, at the end
  Kernel fold;      ///< of two partial results, which have the rank of the result
};

/// Throws Bug for argmax and argmin: positions of extremes are not folded.
PartialReduction partial_reduction(Reducer reducer, ScalarExpr body, std::size_t rank);

/// What becomes of the folded partial result over the labels `reduced`, which is operand 0: a mean is the sum divided
/// by how many values there are. It has still to be converted to `dtype`, the type of the result. nullopt where the
/// folded partial result is the result.
std::optional<ScalarExpr> finished_reduction(Reducer reducer, DType partial, DType dtype,
                                             const std::vector<std::size_t>& reduced, const std::vector<Label>& labels);

/// Positions of extremes are found in two reductions: of the extreme, then the least of these numbers, which are the
/// row-major position over the labels `reduced` where the value is the extreme, or both are NaN, and else above all.
ScalarExpr position_where_equal(const ScalarExpr& value, const ScalarStep& extreme,
                                const std::vector<std::size_t>& reduced, const std::vector<Label>& labels);

}  // namespace einrel
