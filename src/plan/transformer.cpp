#include "plan/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "plan/attention.h"
#include "plan/numbering.h"

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

  /// Labels of products with weights that only the weights have, where what is computed from the product is element by
  /// element, or reduces them in another product with weights; such products reduce no heads.
  Cuts hidden_units() {
    std::vector<bool> is_produced(classes_.count(), false);
    std::vector<bool> is_other(classes_.count(), false);
    std::vector<std::int64_t> extents(classes_.count(), 0);
    for (std::size_t v = 0; v < uses_.size(); ++v) {
      const bool is_product = !uses_[v].reduced.empty();
      const bool is_data = is_input(graph_.vertices[v]) && !is_weights(v);
      const bool reduces_heads = std::any_of(uses_[v].reduced.begin(), uses_[v].reduced.end(),
                                             [&](std::size_t l) { return heads_.contains(classes_.of(v, l)); });
      const Shape label_bound = label_extents(graph_.vertices[v]);
      for (std::size_t l = 0; l < uses_[v].count; ++l) {
        const std::size_t c = classes_.of(v, l);
        extents[c] = std::max(extents[c], label_bound[l].value());
        if (is_data) is_other[c] = true;
        if (!is_product) continue;
        const bool is_kept = has(uses_[v].output, l);
        if (!is_of_weights(v, l, !is_kept) || (is_kept && reduces_heads)) is_other[c] = true;
        if (is_kept) is_produced[c] = true;
      }
    }
    Cuts cuts;
    for (std::size_t c = 0; c < extents.size(); ++c) {
      if (is_produced[c] && !is_other[c] && extents[c] > 1) cuts[c] = std::min(extents[c], sites_);
    }
    return cuts;
  }

  /// Each vertex is cut by the first kind of which it has a label; by none where it has none.
  Plan plan(const std::vector<const Cuts*>& kinds) {
    Plan plan{"", sites_, {}};
    for (std::size_t v = 0; v < uses_.size(); ++v) {
      PartitionVector grid(uses_[v].count, 1);
      if (!is_input(graph_.vertices[v])) {
        const PartitionVector most = most_parts(graph_.vertices[v], graph_);
        for (const Cuts* const kind : kinds) {
          if (cut(v, *kind, most, grid)) break;
        }
      }
      plan.vertices.push_back(one_part_per_site(grid));
    }
    number_sites(graph_, plan);
    return plan;
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

  /// Whether a vertex is a product that takes this label from weights: from them only, or from what they multiply, too.
  bool is_of_weights(std::size_t v, std::size_t label, bool is_in_both) {
    const auto* const einsum = std::get_if<EinSum>(&graph_.vertices[v].op);
    if (einsum == nullptr || einsum->reducer != Reducer::sum) return false;
    bool is_in_weights = false;
    bool is_in_data = false;
    for (std::size_t o = 0; o < uses_[v].operands.size(); ++o) {
      if (!has(uses_[v].operands[o], label)) continue;
      (is_weights(graph_.vertices[v].inputs[o].index) ? is_in_weights : is_in_data) = true;
    }
    return is_in_weights && is_in_data == is_in_both;
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

Planned plan_megatron(const EinGraph& graph, const PlanRequest& request) {
  Transformer transformer(graph, request.sites);
  if (std::optional<std::string> reason = no_heads(transformer, request.sites)) return *reason;
  const Cuts hidden = transformer.hidden_units();
  return transformer.plan({&transformer.heads(), &hidden});
}

Planned plan_sequence(const EinGraph& graph, const PlanRequest& request) {
  Transformer transformer(graph, request.sites);
  if (std::optional<std::string> reason = no_attention(transformer)) return *reason;
  if (transformer.positions().empty() && request.sites > 1) {
    return fmt::format("the attention in it has one position at '{}', which cannot be cut", transformer.name());
  }
  return transformer.plan({&transformer.positions()});
}

Planned plan_heads(const EinGraph& graph, const PlanRequest& request) {
  Transformer transformer(graph, request.sites);
  if (std::optional<std::string> reason = no_heads(transformer, request.sites)) return *reason;
  return transformer.plan({&transformer.heads(), &transformer.positions(), &transformer.batch()});
}

}  // namespace einrel
