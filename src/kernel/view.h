#pragma once

#include "einsum/ein_graph.h"
#include "tensor/tensor.h"

namespace einrel {

/// The re-grouped operand: the same elements in place when its strides allow, else one row-major copy.
Tensor evaluate_view(const Vertex& vertex, const View& view, const Tensor& operand);

}  // namespace einrel
