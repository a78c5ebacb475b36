#pragma once

#include <functional>
#include <optional>
#include <string>

#include "einsum/build/formula.h"

namespace einrel::build {

/// The type that the language gives a formula without macros; nothing for one of bare numbers, labels and scalars,
/// which take the type of what they meet. `tensor` gives those of tensors. O(parts).
std::optional<DType> type_of(const Formula& formula, const std::function<DType(const std::string&)>& tensor);

}  // namespace einrel::build
