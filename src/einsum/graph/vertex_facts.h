#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "einsum/graph/ein_graph.h"

/// What one asks of a vertex, whatever it is. Who adds a kind of vertex answers these questions for it, and the
/// compiler finds what else must be written; so nobody asks elsewhere which kind a vertex is, but those who look for a
/// form.
namespace einrel {

/// The formula of a vertex (or of a step of a kernel) that is an EinSum: for those who look for a form that only an
/// EinSum has. nullptr for all others.
template <class Node>
auto* einsum_of(Node& node) {
  return std::get_if<EinSum>(&node.op);
}

/// That of a View: for those who may take another tensor's memory.
template <class Node>
auto* view_of(Node& node) {
  return std::get_if<View>(&node.op);
}

/// How many batches an Opaque has: the product of the extents of all labels but those of its matrices.
std::int64_t batches_of(const Opaque& opaque);

/// How many of its labels are batches: those of matrices follow.
inline std::size_t batch_labels(const Opaque& opaque) { return opaque.labels.size() - matrix_labels(opaque.function); }

/// The labels of its result's dimensions.
std::vector<std::size_t> dimensions_of(const Opaque& opaque);

inline OpaqueResult result_of(const Opaque& opaque) { return {opaque.function, opaque.output}; }

/// The vertices that one call of linear algebra computes: this one, and those of the other outputs.
std::vector<Vertex> outputs_together(const Vertex& vertex);

/// "the matrix at b=1, c=0 of 'Z' is singular: it has no inverse"; batches are counted in row-major order.
std::string singular_text(const Vertex& vertex, std::int64_t batch);

/// That of linear algebra: for what computes it.
template <class Node>
auto* opaque_of(Node& node) {
  return std::get_if<Opaque>(&node.op);
}

inline bool is_input(const Vertex& vertex) { return std::holds_alternative<Input>(vertex.op); }

/// The labels of a vertex, which partition vectors and grids have entries for; an input has none but its dimensions.
const std::vector<Label>& labels_of(const Vertex& vertex);

/// The extents of the labels; of an input those of its dimensions.
Shape label_extents(const Vertex& vertex);

/// The names of the labels; of an input the numbers of its dimensions.
std::vector<std::string> label_names(const Vertex& vertex);

/// What a label is called in messages: "label 'i'", "dimension 2" of an input.
std::string label_title(const Vertex& vertex, std::size_t label);

/// For each dimension of a tensor the labels that walk through it, the slowest first; in a window, as X[y+d], the one
/// that may be cut; none at a constant.
using LabelGroups = std::vector<std::vector<std::size_t>>;
LabelGroups result_groups(const Vertex& vertex);
LabelGroups operand_groups(const Vertex& vertex, std::size_t operand);

/// For each dimension of its result, the label whose parts cut it, if any: of a group, the first.
std::vector<std::optional<std::size_t>> result_labels(const Vertex& vertex);
/// The same of an operand.
std::vector<std::optional<std::size_t>> operand_labels(const Vertex& vertex, std::size_t operand);

/// The labels that a vertex reduces.
std::vector<std::size_t> reduced_labels(const Vertex& vertex);

/// The operands that a vertex reads, ascending. An EinSum may have others, which only give labels their extents.
std::vector<std::size_t> operands_read(const Vertex& vertex);
std::vector<std::size_t> operands_read(const ScalarExpr& body);

/// Whether a vertex reads an operand at a constant along a dimension, as A[3,b]: of one part at most, then.
bool is_at_constant(const Vertex& vertex, std::size_t operand, std::size_t dimension);

/// The label that an index is, if it is nothing but a label.
std::optional<std::size_t> plain_label(const Index& index);

/// The label whose parts cut a dimension that is read at this index: of several, as in X[y+d], the one of the largest
/// extent. None at a constant.
std::optional<std::size_t> label_along(const EinSum& einsum, const Index& index);

/// For each label, why a plan may not cut it; "" where it may.
std::vector<std::string> cannot_be_cut(const Vertex& vertex, const EinGraph& graph);
/// The same where no chunks may overlap, as in a database: labels in windows, as X[y+d], stay whole.
std::vector<std::string> cannot_be_cut_apart(const Vertex& vertex, const EinGraph& graph);

/// Scalar operations of a vertex: (steps of the body that compute + 1 if it reduces) per binding of its labels, but for
/// those that are selected (selection.h); 0 for inputs and views; 2 n^3 for the inverse of n x n; of qr, for R the
/// factorization, for Q what that adds. As a double, since it may exceed 63 bits.
double flops(const Vertex& vertex);

}  // namespace einrel
