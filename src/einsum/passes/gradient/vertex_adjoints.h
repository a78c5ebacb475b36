#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "einsum/front/build/formula.h"
#include "einsum/passes/gradient/derivatives.h"
#include "einsum/passes/gradient/gradient.h"
#include "einsum/passes/gradient/signs.h"

namespace einrel::gradient {

/// What flows back to one operand of a vertex, over the labels of the vertex.
struct OperandAdjoint {
  std::size_t operand = 0;
  build::Formula value;
};

/// The parts of the chain rule at an EinSum: what flows back from `adjoint`, a formula over its output labels, to each
/// operand that `wanted` has, through its reduction and its body. An operand may not come at all.
/// Adds tensors that the formulas need: which positions attain a maximum, products of all others, parts that they
/// share.
std::vector<OperandAdjoint> adjoints_of_operands(VertexId vertex, const build::Formula& adjoint,
                                                 const std::vector<bool>& wanted, const GrowingGraph& growing,
                                                 const Signs& signs);

}  // namespace einrel::gradient
