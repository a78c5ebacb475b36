#pragma once

#include "einsum/graph/ein_graph.h"

namespace einrel {

/// Vertices over more than `most` tensors, two at least, become several; with two,
///   Z[i,j] = A[i] * B[i] + C[i,j]  =>  Z_1[i] = A[i] * B[i] ; Z[i,j] = Z_1[i] + C[i,j]
/// What of a body reads two tensors and more, and cannot stay beside others, becomes a vertex, exactly: each step is
/// rounded to its type anyway. Where no part reads two, as in where(a, b, c), three stay together.
EinGraph split_joins(const EinGraph& graph, std::size_t most);

}  // namespace einrel
