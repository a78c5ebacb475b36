#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "einsum/front/build/formula.h"
#include "einsum/graph/ein_graph.h"

namespace einrel::gradient {

/// A formula over the labels of a vertex, which has a value wherever these are in range.
struct OverLabels {
  const std::vector<Label>& labels;
  std::vector<std::string> names;  ///< of the labels, in `value`
  build::Formula value;
  DType computed = DType::f32;  ///< the type that it is computed in, which a number does not say
};

/// The formula over the dimensions of a tensor, that are called so, which is at each position the sum of what
/// `from` is wherever the vertex reads this position: the transpose of reading. `bound`: the shape of the tensor.
/// `extents`: the labels of the formulas that this one stands beside, to which it adds its own. `reserved`: names that
/// no label can have.
///   reading X[2*y+k], f(y,k) gives sum[y,k] where(x == 2*y+k, f(y,k), 0)
///   reading X[y+k], g[y] * K[k] gives sum[k] pad(g[x-k], 0) * K[k]
build::Formula projected(const OverLabels& from, const std::vector<Index>& indices, const Shape& bound,
                         const std::vector<std::string>& dimensions, std::map<std::string, Extent>& extents,
                         const std::set<std::string>& reserved);

}  // namespace einrel::gradient
