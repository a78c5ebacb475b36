#pragma once

#include <string>

#include "einsum/ein_graph.h"

namespace einrel {

/// A vertex as its formula in the language, with its own label names:
/// "Z[i,k] = sum[j] X[i,j] * Y[j,k]", "H[b,h,d] = view X[b,(h d)]", "input X[100,5] : f32". O(size of the vertex).
std::string formula(const Vertex& vertex, const EinGraph& graph);

}  // namespace einrel
