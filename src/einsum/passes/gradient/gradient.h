#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "einsum/front/build/formula.h"
#include "einsum/graph/ein_graph.h"

/// Reverse mode differentiation of a graph (Linnainmaa 1976), which gives EinSums again: for
///   Z[out] = sum over red of body(X[x], Y[y], ...)
/// the adjoint of X is the sum, over all labels that X lacks, of (adjoint of Z) * (d body / d X).
namespace einrel::gradient {

/// A tensor that an adjoint is computed by, to be added to the graph.
struct Definition {
  Span where;
  std::string name;
  std::vector<std::string> labels;
  build::Formula value;
  std::map<std::string, Extent> extents;  ///< of its labels
};

/// The graph that is differentiated and grows. Tensors are added under a name like the one they come with; one that
/// equals another becomes that one.
struct GrowingGraph {
  const EinGraph& graph;
  /// Throws UserError where the program grows too large.
  std::function<VertexId(const Definition&)> define;
  std::function<VertexId(Vertex)> add;
  std::function<VertexId(const std::string&)> find;  ///< by the name of a vertex
  std::set<std::string> reserved;                    ///< names that no label can have
};

/// What is to be differentiated, and by what.
struct Request {
  VertexId of;
  /// What flows back into it, of its shape; 1 without.
  std::optional<VertexId> seed;
  std::vector<VertexId> variables;
  /// For each variable names for its dimensions; "" where any will do.
  std::vector<std::vector<std::string>> labels;
};

/// An adjoint: a formula over these labels, one for each dimension of the variable.
struct Adjoint {
  std::vector<std::string> labels;
  build::Formula value;
  std::map<std::string, Extent> extents;
};

struct Adjoints {
  /// For each variable; nothing where it is 0 everywhere.
  std::vector<std::optional<Adjoint>> of_variables;
  /// Vertices and operands of theirs that depend on a variable, but to which nothing flows back.
  std::vector<std::pair<VertexId, VertexId>> blocked;
};

/// O(vertices up to `of`, each with its formula). All extents are known.
Adjoints adjoints(const Request& request, const GrowingGraph& growing);

/// Which vertices are variables or computed from them, whether or not anything flows back. O(vertices).
std::vector<bool> depend_on(const EinGraph& graph, const std::vector<VertexId>& variables);

}  // namespace einrel::gradient
