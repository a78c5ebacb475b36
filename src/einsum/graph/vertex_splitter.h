#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "einsum/graph/contraction_tree.h"
#include "einsum/graph/ein_graph.h"
#include "einsum/graph/vertex_facts.h"

namespace einrel {

/// A part of a vertex's body, in terms of the vertex's labels and of its operands followed by new vertices.
struct BodyPart {
  ScalarExpr expr;
  LabelSet labels;
};

/// What passes that replace one vertex by several share: new vertices that compute parts of its body, and the last one
/// that takes its place.
class VertexSplitter {
 public:
  /// Appends to `graph`, in which the inputs of `vertex` stand; adds the names that it invents to `names`.
  VertexSplitter(const Vertex& vertex, EinGraph& graph, std::set<std::string>& names)
      : vertex_(vertex),
        einsum_(std::get<EinSum>(vertex.op)),
        graph_(graph),
        names_(names),
        first_(graph.vertices.size()) {}

  const EinSum& einsum() const { return einsum_; }
  const Vertex& vertex() const { return vertex_; }
  LabelSet labels_of(const ScalarExpr& expr) const;
  LabelSet all_labels() const { return LabelSet(einsum_.labels.size(), true); }
  LabelSet output_labels() const;
  /// The product of the extents of labels.
  double elements(const LabelSet& labels) const;
  /// Over no binding at all there is nothing to gain, and a sum is 0 whatever its body is.
  bool has_no_bindings() const;
  /// What operand `position` is: one of the vertex's, or one that was added.
  std::pair<VertexId, Access> operand(std::size_t position) const;

  /// A new vertex over the labels in `all` that `needed` has, reduced over the others, and how to read it. Its labels
  /// lie as in the operands, or in this order. It has the body's type, or is `stored` as one that is computed in that.
  BodyPart intermediate(const ScalarExpr& body, const LabelSet& all, const LabelSet& needed,
                        Reducer reducer = Reducer::sum, std::optional<DType> stored = std::nullopt);
  BodyPart intermediate(const ScalarExpr& body, const LabelSet& all, const std::vector<std::size_t>& order,
                        Reducer reducer, std::optional<DType> stored = std::nullopt);
  /// A new vertex with the elements of the operand at `position`, one by one through `body`, which reads nothing else;
  /// read as that operand is, with `pad` for its pad.
  BodyPart mapped_operand(const ScalarExpr& body, std::size_t position, std::optional<double> pad);
  /// The vertex that takes the place of the original one: `body` over `all`, reduced to its output.
  void finish(const ScalarExpr& body, const LabelSet& all, std::optional<Reducer> reducer);

  /// Takes back what was added, unless each new vertex has a size that can be counted, or is no larger than that: one
  /// can be larger than all that the program stores.
  bool keep_what_fits(double most_bytes = 0x1p62);
  std::size_t first_added() const { return first_; }

 private:
  struct OperandLabels {
    std::vector<std::vector<std::size_t>> lists;
    std::vector<std::size_t> holders;
  };
  OperandLabels labels_of_operands(const ScalarExpr& body, std::size_t count) const;
  BodyPart read(VertexId id, DType type, Access access);
  std::vector<std::size_t> order_of(const ScalarExpr& body, const LabelSet& labels) const;
  std::string unused_name();
  VertexId add_vertex(const ScalarExpr& body, const LabelSet& all, const std::vector<std::size_t>& output,
                      std::optional<Reducer> reducer, Vertex vertex);

  const Vertex& vertex_;
  const EinSum& einsum_;
  EinGraph& graph_;
  std::set<std::string>& names_;
  std::size_t first_;
  std::vector<std::pair<VertexId, Access>> extra_operands_;
  std::size_t last_number_ = 0;
};

/// `graph` with each EinSum as `split` leaves it: split(vertex, splitter, graph so far) is true when the vertices that
/// it appended replace the given one, the last of them in its place; else the vertex stays. O(vertices) beside `split`.
template <class Split>
EinGraph replace_vertices(const EinGraph& graph, const Split& split) {
  EinGraph result;
  std::set<std::string> names;
  for (const Vertex& vertex : graph.vertices) names.insert(vertex.name);
  std::vector<VertexId> moved;
  for (const Vertex& original : graph.vertices) {
    Vertex vertex = original;
    for (VertexId& input : vertex.inputs) input = moved[input.index];
    const bool is_replaced =
        einsum_of(vertex) != nullptr && split(vertex, VertexSplitter(vertex, result, names), result);
    if (!is_replaced) result.vertices.push_back(std::move(vertex));
    moved.push_back(VertexId{result.vertices.size() - 1});
  }
  copy_interface(graph, moved, result);
  return result;
}

}  // namespace einrel
