#pragma once

#include <string>
#include <vector>

#include "einsum/graph/ein_graph.h"

namespace einrel {

/// What ordering did to one n-ary product, for EXPLAIN.
struct OrderedContraction {
  std::string tensor;
  std::size_t factors = 0;
  bool optimal = false;  ///< found by exhaustive search, not greedily
  double flops_as_written = 0;
  double flops_ordered = 0;
  std::vector<std::string> steps;  ///< the tensors that replace it, in order; the last one is `tensor`
};

/// Replaces every sum of a product of several factors by binary contractions in a cheap order (contraction_tree.h):
///   Z[i,l] = sum[j,k] A[i,j] * B[j,k] * C[k,l]  =>  Z_1[j,l] = sum[k] B * C ; Z[i,l] = sum[j] A * Z_1
/// Factors without labels are multiplied into the smallest other factor first. What divides the product divides one
/// factor instead, or the sum if it has no summed label: whichever has fewest elements. Sums over labels of a single
/// factor are taken before the product where that is cheaper. Integers do not change at all, floats by rounding, and
/// where factors or intermediate products are infinite, NaN or out of range, as any re-association does. Intermediates
/// have the type that the product is computed in, and their labels lie as they do in the operands, those of both first,
/// so that whole stretches of an operand meet in them; a product whose intermediates would exceed 2^62 bytes stays as
/// it is.
EinGraph order_contractions(const EinGraph& graph, std::vector<OrderedContraction>& report);

}  // namespace einrel
