#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "einsum/graph/ein_graph.h"

namespace einrel {

/// Where a vertex has its labels; of an Input, its dimensions.
struct LabelUses {
  std::size_t count = 0;
  std::vector<std::size_t> output;
  std::vector<std::size_t> reduced;
  std::vector<std::optional<std::size_t>> result;                 ///< per dimension, see result_labels
  std::vector<std::vector<std::optional<std::size_t>>> operands;  ///< per dimension, see operand_labels
};
std::vector<LabelUses> label_uses(const EinGraph& graph);

/// Attention as the paper has it (EinDecomp, section 3): scores, which are a product of queries and keys; a softmax of
/// them, which divides their exponentials by the sums of these over the positions of the keys; a sum of values over the
/// same positions, weighted by it. Vertices, operands of them, and labels of the scores.
struct Attention {
  std::size_t scores = 0;
  std::size_t queries = 0;  ///< operand of the scores
  std::size_t keys = 0;     ///< operand of the scores
  std::size_t weighted_sum = 0;
  std::size_t values = 0;              ///< operand of the weighted sum, which reduces positions of keys
  std::vector<std::size_t> positions;  ///< of the queries
  std::vector<std::size_t> key_positions;
  std::vector<std::size_t> heads;  ///< first those that the keys have, too
  std::vector<std::size_t> batch;
};

struct AttentionOfGraph {
  std::vector<Attention> found;
  /// Vertices that are scores, or are computed from them element by element, with labels that are positions of keys.
  std::set<std::pair<std::size_t, std::size_t>> key_labels;
};

/// All attention of a graph, by structure alone. Of the operands of the product that gives the queries, or else of that
/// which gives the keys, the one that has what the scores reduce is the weights: labels that it gives the scores are
/// heads, what queries and keys have besides is a batch. A product of data with weights whose softmax is multiplied by
/// weights, a hidden layer, is no attention. O(operands of all vertices), and of those between a projection and scores
/// for each attention.
AttentionOfGraph find_attention(const EinGraph& graph, const std::vector<LabelUses>& uses);

}  // namespace einrel
