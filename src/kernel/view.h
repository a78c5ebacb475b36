#pragma once

#include <optional>

#include "einsum/ein_graph.h"
#include "tensor/tensor.h"

namespace einrel {

/// The strides of the re-grouped tensor over the operand's own elements; nothing when it takes a copy.
std::optional<Strides> view_strides(const View& view, const Strides& operand);

/// The re-grouped operand: the same elements in place when its strides allow, else one row-major copy.
Tensor evaluate_view(const Vertex& vertex, const View& view, const Tensor& operand);

}  // namespace einrel
