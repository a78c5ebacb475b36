#pragma once

#include <vector>

#include "einsum/graph/ein_graph.h"
#include "tensor/tensor.h"

namespace einrel {

/// One vertex by nested loops over its labels, exactly as defined: the oracle for every kernel. Each scalar step is
/// computed in double (floats) or int64 (integers, bool) and rounded to the step's type; reductions accumulate in
/// double or int64 and are rounded once. `operands` in the order of vertex.inputs. O(product of all extents).
Tensor evaluate_reference(const Vertex& vertex, const std::vector<Tensor>& operands, const ScalarBindings& scalars);

/// Every vertex of the graph in order; the result has one tensor per graph output.
std::vector<Tensor> evaluate_reference(const EinGraph& graph, const TensorBindings& inputs,
                                       const ScalarBindings& scalars);

}  // namespace einrel
