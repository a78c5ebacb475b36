#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "einsum/front/build/formula.h"

namespace einrel::gradient {

/// What cutting tensors out of formulas needs.
struct Cutting {
  /// As FormulaTypes gives it.
  std::function<std::optional<DType>(const build::Formula&)> type_of;
  /// Makes a tensor of a part; the element of it that is read in place of the part.
  std::function<build::Formula(const build::Formula&)> stored;
};

/// The formulas, which reduce nothing, with tensors in place of what stands in several places, unless it is as well
/// computed again: so they are no longer than what they are made of, however often that stands in them. A tensor is 0
/// where every where() around the part takes another side, as the part itself counts for nothing there. O(parts).
std::vector<build::Formula> with_shared_parts(const std::vector<build::Formula>& formulas, const Cutting& cutting);

}  // namespace einrel::gradient
