#pragma once

#include <string>
#include <utility>
#include <vector>

#include "node.h"

namespace einrel::python {

/// A graph that shows how nodes depend on others, whatever of it was computed.
struct GradientGraph {
  std::vector<NodePtr> of;
  std::vector<NodePtr> by;
  std::vector<bool> are_reached;                      ///< of `by`, each: whether something is made of it
  std::vector<std::pair<NodePtr, std::string>> left;  ///< what was made of these outside of the graph, and where
};

/// Copies of nodes, down to what does not depend on `by`: they can be computed whatever becomes of the others. What was
/// computed on the way from one of `by` is made anew as it was made, and so are results of functions that were traced.
GradientGraph gradient_graph(const std::vector<NodePtr>& of, const std::vector<NodePtr>& by);

/// Copies of nodes in which `values` stand in place of `arguments`, which are arguments of functions that are traced.
std::vector<NodePtr> substituted(const std::vector<NodePtr>& nodes, const std::vector<NodePtr>& arguments,
                                 const std::vector<NodePtr>& values);

}  // namespace einrel::python
