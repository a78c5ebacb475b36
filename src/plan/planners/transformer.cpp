#include "plan/planners/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "einsum/graph/vertex_facts.h"
#include "plan/planners/attention.h"

namespace einrel {
namespace {

template <class List>
bool has(const List& list, std::size_t label) {
  return std::find(list.begin(), list.end(), label) != list.end();
}

/// Labels of different vertices that mean the same, since tensors carry them from one to the other.
class LabelClasses {
 public:
  LabelClasses(const EinGraph& graph, const std::vector<LabelUses>& uses, const std::vector<Attention>& attentions) {
    for (const LabelUses& of : uses) {
      first_.push_back(parent_.size());
      for (std::size_t l = 0; l < of.count; ++l) parent_.push_back(parent_.size());
    }
    // Keys and values are read by positions of keys, and computed by what may be those of queries.
    std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> apart;
    for (const Attention& attention : attentions) {
      apart[{attention.scores, attention.keys}] = attention.key_positions;
      apart[{attention.weighted_sum, attention.values}] = uses[attention.weighted_sum].reduced;
    }
    for (std::size_t v = 0; v < uses.size(); ++v) {
      for (std::size_t o = 0; o < uses[v].operands.size(); ++o) {
        const auto except = apart.find({v, o});
        const std::size_t from = graph.vertices[v].inputs[o].index;
        for (std::size_t d = 0; d < uses[v].operands[o].size(); ++d) {
          const std::optional<std::size_t> label = uses[v].operands[o][d];
          const std::optional<std::size_t> inside = uses[from].result[d];
          if (!label || !inside || (except != apart.end() && has(except->second, *label))) continue;
          parent_[root(first_[v] + *label)] = root(first_[from] + *inside);
        }
      }
    }
  }

  std::size_t of(std::size_t vertex, std::size_t label) { return root(first_[vertex] + label); }
  std::size_t count() const { return parent_.size(); }

 private:
  std::size_t root(std::size_t node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  std::vector<std::size_t> first_;  ///< per vertex
  std::vector<std::size_t> parent_;
};

/// Classes of labels that are cut, and over how many sites each.
using Cuts = std::map<std::size_t, std::int64_t>;

/// A graph in which attention was found, and how it may be cut by kinds of labels.
class Transformer {
 public:
  Transformer(const EinGraph& graph, std::int64_t sites)
      : graph_(graph),
        sites_(sites),
        uses_(label_uses(graph)),
        attention_(find_attention(graph, uses_)),
        classes_(graph, uses_, attention_.found) {
    for (const Attention& attention : attention_.found) {
      add(heads_, attention.scores, attention.heads);
      for (const std::vector<std::size_t>* const labels : {&attention.positions, &attention.batch}) {
        for (const std::size_t label : *labels) of_data_.insert(classes_.of(attention.scores, label));
      }
      add(positions_, attention.scores, attention.positions);
      add(batch_, attention.scores, attention.batch);
      add_positions(attention.scores, attention.keys, attention.key_positions);
      add_positions(attention.weighted_sum, attention.values, uses_[attention.weighted_sum].reduced);
    }
  }

  bool has_attention() const { return !attention_.found.empty(); }
  bool has_heads() const {
    return std::any_of(attention_.found.begin(), attention_.found.end(),
                       [](const Attention& attention) { return !attention.heads.empty(); });
  }
  /// Of the first attention: its scores.
  const std::string& name() const { return graph_.vertices[attention_.found.front().scores].name; }

  const Cuts& heads() const { return heads_; }
  const Cuts& positions() const { return positions_; }
  const Cuts& batch() const { return batch_; }

  /// Without attention: whatever has a label of this name, or what tensors carry it to, is data, no weights.
  void take_as_batch(const std::string& label) {
    for (std::size_t v = 0; v < uses_.size(); ++v) {
      if (is_input(graph_.vertices[v])) continue;
      const std::vector<std::string> names = label_names(graph_.vertices[v]);
      for (std::size_t l = 0; l < names.size(); ++l) {
        if (names[l] == label) of_data_.insert(classes_.of(v, l));
      }
    }
  }

  /// Labels that products take from weights alone, in pairs: a product keeps them (is cut by its columns), and another
  /// one reduces them (is cut by its rows), with only what is computed element by element between; or an output has
  /// them. No product keeps one and reduces another, or one of heads.
  const Cuts& hidden_units() const { return hidden_units_; }
  /// The same, but something else reads them, too, and has to gather what has been cut.
  const Cuts& gathered() const { return gathered_; }
  void find_hidden_units() {
    const std::vector<Product> products = products_with_weights();
    const std::set<std::size_t> others = read_otherwise();
    std::map<std::size_t, std::vector<const Product*>> with_label;
    for (const Product& product : products) {
      for (const auto& [label, extent] : product.extents) with_label[label].push_back(&product);
    }
    std::set<std::size_t> cut;
    for (const auto& [label, sites] : heads_) cut.insert(label);
    std::set<std::size_t> refused;  // for good: what is cut only grows
    for (const Product& product : products) {
      for (const std::size_t label : product.kept) {
        const std::int64_t extent = product.extents.at(label);
        if (extent < 2 || cut.contains(label) || refused.contains(label)) continue;
        const std::vector<const Product*>& others_with = with_label.at(label);
        const bool is_apart = std::none_of(others_with.begin(), others_with.end(),
                                           [&](const Product* other) { return other->has_another(label, cut); });
        (is_apart ? cut : refused).insert(label);
        if (!is_apart) continue;
        (others.contains(label) ? gathered_ : hidden_units_)[label] = std::min(extent, sites_);
      }
    }
  }

  /// Each vertex is cut by the first kind of which it has a label; by none where it has none. The last kind is for
  /// products with weights, and what becomes of weights.
  std::vector<PartitionVector> grids(const std::vector<const Cuts*>& kinds, const Cuts& of_weights = {}) {
    std::vector<PartitionVector> grids;
    for (std::size_t v = 0; v < uses_.size(); ++v) {
      PartitionVector& grid = grids.emplace_back(uses_[v].count, 1);
      if (is_input(graph_.vertices[v])) continue;
      const PartitionVector most = most_parts(graph_.vertices[v], graph_);
      const bool is_cut =
          std::any_of(kinds.begin(), kinds.end(), [&](const Cuts* const kind) { return cut(v, *kind, most, grid); });
      if (!is_cut && (is_weights(v) || is_product_with_weights(v))) cut(v, of_weights, most, grid);
    }
    return grids;
  }

 private:
  /// Together over at most all sites.
  void add(Cuts& kind, std::size_t vertex, const std::vector<std::size_t>& labels) {
    const Shape extents = label_extents(graph_.vertices[vertex]);
    std::int64_t left = sites_;
    for (const std::size_t label : labels) {
      const std::int64_t sites = std::min(extents[label].value(), left);
      if (sites > 1) left /= kind.try_emplace(classes_.of(vertex, label), sites).first->second;
    }
  }

  /// What an operand is read at by these labels.
  void add_positions(std::size_t vertex, std::size_t operand, const std::vector<std::size_t>& labels) {
    const std::size_t from = graph_.vertices[vertex].inputs[operand].index;
    for (std::size_t d = 0; d < uses_[vertex].operands[operand].size(); ++d) {
      const std::optional<std::size_t> label = uses_[vertex].operands[operand][d];
      const std::optional<std::size_t> inside = uses_[from].result[d];
      if (!label || !inside || !has(labels, *label)) continue;
      of_data_.insert(classes_.of(from, *inside));
      add(positions_, from, {*inside});
    }
  }

  /// A tensor without positions and batch.
  bool is_weights(std::size_t v) {
    return std::none_of(uses_[v].output.begin(), uses_[v].output.end(),
                        [&](std::size_t label) { return of_data_.contains(classes_.of(v, label)); });
  }

  /// A sum of products of data with weights. Gradients of weights are none: they are weights.
  bool is_product_with_weights(std::size_t v) {
    const EinSum* const einsum = einsum_of(graph_.vertices[v]);
    if (einsum == nullptr || einsum->reducer != Reducer::sum || is_weights(v)) return false;
    const std::vector<VertexId>& inputs = graph_.vertices[v].inputs;
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](VertexId from) { return is_weights(from.index) && !graph_[from].bound.empty(); });
  }

  /// Labels by their classes.
  struct Product {
    std::vector<std::size_t> kept;     ///< that only weights have
    std::vector<std::size_t> reduced;  ///< that weights and data have
    std::map<std::size_t, std::int64_t> extents;

    bool has_another(std::size_t label, const std::set<std::size_t>& of) const {
      return std::any_of(extents.begin(), extents.end(),
                         [&](const auto& own) { return own.first != label && of.contains(own.first); });
    }
  };

  std::vector<Product> products_with_weights() {
    std::vector<Product> products;
    for (std::size_t v = 0; v < uses_.size(); ++v) {
      if (!is_product_with_weights(v)) continue;
      Product& product = products.emplace_back();
      const PartitionVector most = most_parts(graph_.vertices[v], graph_);
      for (std::size_t l = 0; l < uses_[v].count; ++l) {
        const auto [in_weights, in_data] = origin_of(v, l);
        const bool is_kept = has(uses_[v].output, l);
        if (!in_weights || in_data == is_kept) continue;
        (is_kept ? product.kept : product.reduced).push_back(classes_.of(v, l));
        product.extents[classes_.of(v, l)] = most[l];
      }
    }
    return products;
  }

  /// Labels of data that are inputs, and of reductions that are no products with weights of them; but gradients of
  /// weights have any.
  std::set<std::size_t> read_otherwise() {
    std::set<std::size_t> labels;
    for (std::size_t v = 0; v < uses_.size(); ++v) {
      if (is_weights(v) || (!is_input(graph_.vertices[v]) && uses_[v].reduced.empty())) continue;
      const bool is_product = is_product_with_weights(v);
      for (std::size_t l = 0; l < uses_[v].count; ++l) {
        const auto [in_weights, in_data] = origin_of(v, l);
        const bool is_of_weights = is_product && in_weights && in_data != has(uses_[v].output, l);
        if (!is_of_weights) labels.insert(classes_.of(v, l));
      }
    }
    return labels;
  }

  /// Whether weights have this label of a vertex, and whether data has it.
  std::pair<bool, bool> origin_of(std::size_t v, std::size_t label) {
    std::pair<bool, bool> origin{false, false};
    for (std::size_t o = 0; o < uses_[v].operands.size(); ++o) {
      if (!has(uses_[v].operands[o], label)) continue;
      (is_weights(graph_.vertices[v].inputs[o].index) ? origin.first : origin.second) = true;
    }
    return origin;
  }

  /// One label of each class, first those of the result, and never positions of keys of scores.
  bool cut(std::size_t v, const Cuts& kind, const PartitionVector& most, PartitionVector& grid) {
    std::vector<std::size_t> order = uses_[v].output;
    order.insert(order.end(), uses_[v].reduced.begin(), uses_[v].reduced.end());
    std::set<std::size_t> done;
    std::int64_t left = sites_;
    for (const std::size_t label : order) {
      const auto found = kind.find(classes_.of(v, label));
      if (found == kind.end() || done.contains(found->first) || attention_.key_labels.contains({v, label})) continue;
      grid[label] = std::min({found->second, most[label], left});
      left /= grid[label];
      if (grid[label] > 1) done.insert(found->first);
    }
    return !done.empty();
  }

  const EinGraph& graph_;
  std::int64_t sites_;
  std::vector<LabelUses> uses_;
  AttentionOfGraph attention_;
  LabelClasses classes_;
  Cuts heads_;
  Cuts positions_;  ///< of queries, and of keys and values where they are computed
  Cuts batch_;
  Cuts hidden_units_;
  Cuts gathered_;
  std::set<std::size_t> of_data_;  ///< positions and batch, also where they cannot be cut
};

std::optional<std::string> no_attention(const Transformer& transformer) {
  if (transformer.has_attention()) return std::nullopt;
  return "there is no attention in it: no sum of values is weighted by a softmax of products of queries and keys";
}

std::optional<std::string> no_heads(const Transformer& transformer, std::int64_t sites) {
  if (std::optional<std::string> reason = no_attention(transformer)) return reason;
  if (!transformer.has_heads()) {
    return fmt::format(
        "the attention in it has no heads: no label of '{}' comes from weights that give queries or keys",
        transformer.name());
  }
  if (transformer.heads().empty() && sites > 1) {
    return fmt::format("the attention in it has one head at '{}', which cannot be cut", transformer.name());
  }
  return std::nullopt;
}

}  // namespace

SchemeGrids tensor_grids(const EinGraph& graph, const PlanRequest& request) {
  Transformer transformer(graph, request.sites);
  if (!transformer.has_attention()) {
    const std::optional<std::string> batch = batch_label(graph, request);
    if (!batch) return "no vertex reads the first label of the first input";
    transformer.take_as_batch(*batch);
  }
  transformer.find_hidden_units();
  const bool is_cut =
      !transformer.heads().empty() || !transformer.hidden_units().empty() || !transformer.gathered().empty();
  if (!is_cut && request.sites > 1) return "no product of data with weights takes a label from these that can be cut";
  return transformer.grids({&transformer.heads(), &transformer.hidden_units()}, transformer.gathered());
}

SchemeGrids sequence_grids(const EinGraph& graph, const PlanRequest& request) {
  Transformer transformer(graph, request.sites);
  if (std::optional<std::string> reason = no_attention(transformer)) return *reason;
  if (transformer.positions().empty() && request.sites > 1) {
    return fmt::format("the attention in it has one position at '{}', which cannot be cut", transformer.name());
  }
  return transformer.grids({&transformer.positions()});
}

SchemeGrids heads_grids(const EinGraph& graph, const PlanRequest& request) {
  Transformer transformer(graph, request.sites);
  if (std::optional<std::string> reason = no_heads(transformer, request.sites)) return *reason;
  return transformer.grids({&transformer.heads(), &transformer.positions(), &transformer.batch()});
}

}  // namespace einrel
