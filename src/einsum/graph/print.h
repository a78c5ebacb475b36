#pragma once

#include <string>

#include "einsum/graph/ein_graph.h"

namespace einrel {

/// A vertex as its formula in the language, with its own label names:
/// "Z[i,k] = sum[j] X[i,j] * Y[j,k]", "H[b,h,d] = view X[b,(h d)]", "Z[i,j] = inverse[i,j](X[i,j])", "input X[100,5] :
/// f32". O(size of the vertex).
std::string formula(const Vertex& vertex, const EinGraph& graph);

/// "2*y+dy-1"
std::string index_text(const Index& index, const std::vector<Label>& labels);
/// "X[i,2*y+dy]", "pad(X[i+1], 0)"
std::string access_text(const Access& access, const std::string& tensor, const std::vector<Label>& labels);

}  // namespace einrel
