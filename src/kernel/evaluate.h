#pragma once

#include <vector>

#include "einsum/ein_graph.h"
#include "tensor/tensor.h"

namespace einrel {

/// One EinSum or View vertex; `operands` in the order of vertex.inputs, of any strides and alignment. Agrees with
/// evaluate_reference: exactly for integers, to the rounding of the output type for floats (a product of f32 summed by
/// BLAS: of f32 sums). Needs memory for the result and a bounded workspace; a View shares its operand's memory where it
/// can. The same operands give the same bits, whatever the number of cores. Throws RunError when there is no memory for
/// the result, UserError when an index or the number of label bindings leaves 63 bits.
Tensor evaluate(const Vertex& vertex, const std::vector<Tensor>& operands, const ScalarBindings& scalars);

}  // namespace einrel
