#pragma once

#include <optional>
#include <string>
#include <vector>

#include "einsum/graph/ein_graph.h"
#include "tra/tra_expr.h"

namespace einrel {

/// The partition vector of every vertex: parts per label (per dimension for an Input). EinDecomp, section 4.
struct GraphCuts {
  std::vector<std::vector<std::int64_t>> parts;
};

/// Cuts for a program without a planner: every label that can be cut into min(sites, extent) parts, the largest first
/// and while a vertex has at most 1024 kernel calls (which is also the number of sites that they keep busy at most), so
/// that every scheme for a contraction is within reach of the rules and equal labels are mostly cut alike.
GraphCuts default_cuts(const EinGraph& graph, std::int64_t sites);

/// How each dimension of a vertex's operand, and of its result, is cut where its labels are cut so: by the first label
/// that walks through it, in units of the others; with a window where the label is read at other places than its own,
/// unless these are chunks side by side, as of X[2*y+d] for d below 2.
/// Operands that read one tensor in windows of the same labels have the same chunks, which hold what all of them read.
/// `bound` is the operand's.
std::vector<DimensionCut> operand_cuts(const Vertex& vertex, std::size_t operand, const Shape& bound,
                                       const std::vector<std::int64_t>& parts);
/// One of them: of a dimension of this extent.
DimensionCut operand_cut(const Vertex& vertex, std::size_t operand, std::size_t dim, Extent extent,
                         const std::vector<std::int64_t>& parts);
std::vector<DimensionCut> result_cuts(const Vertex& vertex, const std::vector<std::int64_t>& parts);

/// The program over chunks (EinDecomp, section 4.3): every vertex Z[lZ] = (+) (x)(X[lX], Y[lY]) with partition vector d
/// becomes ReKey(Aggregate(Join(Repartition X, Repartition Y))), with the same EinSum as kernel. What the paper has
/// not:
/// - a vertex over any number of operands is one join of all relations that it reads;
/// - a label's value is where the chunk begins, a number of the key, and the position in it;
/// - a label that no operand reads becomes a LabelPositions;
/// - a repeated label X[i,i] is a Filter k0 == k1 and a ReKey;
/// - mean is a sum and a division, logsumexp folds with log(e^a + e^b), argmax and argmin the first position of the
///   extreme; where their labels are not cut they stay whole;
/// - a view cuts the first label of each group, in units of the others;
/// - linear algebra cuts batches: Transform, and ReKey where dimensions change their order.
/// Output relations have one key position per dimension. Throws UserError for a cut that a label does not allow.
TraExpr from_einsum(const EinGraph& graph, const GraphCuts& cuts);

/// Per key position, the label of a vertex whose chunks it counts; nothing where it counts none and is 0.
using KeyLabels = std::vector<std::optional<std::size_t>>;

/// What a node does for a vertex of the graph.
struct NodeRole {
  std::size_t vertex = 0;
  std::vector<KeyLabels> inputs;
  KeyLabels labels;
};

/// The program of from_einsum, and per node its role; none for LabelPositions and for what brings operands into shape,
/// which several vertices may share.
struct EinGraphProgram {
  TraExpr program;
  std::vector<std::optional<NodeRole>> roles;
};
EinGraphProgram from_einsum_with_roles(const EinGraph& graph, const GraphCuts& cuts);

}  // namespace einrel
