#pragma once

#include "einsum/graph/ein_graph.h"

namespace einrel {

/// `graph` with each sum that selects labels (selection.h) as sums that select labels of one tensor, which kernels
/// compute without looping over these labels, and others that select none:
///   sum[v,d] where(v == T[s], E[v,d] * W[d], 0)    = sum[d] H[s,d] * W[d], where H[s,d] = sum[v] where(v == T[s],
///   E[v,d], 0) sum[s] where(v == T[s], X[s,d] * W[s], 0)      = sum[s] where(v == T[s], R[s,d], 0), where R[s,d] =
///   X[s,d] * W[s]
/// Equal but for rounding. A vertex stays as it is where what lies between would be much more than what it reads and
/// writes. O(vertices).
EinGraph split_selections(const EinGraph& graph);

}  // namespace einrel
