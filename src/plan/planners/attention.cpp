#include "plan/planners/attention.h"

#include <algorithm>
#include <array>
#include <map>

#include "einsum/graph/vertex_facts.h"
#include "plan/plan.h"

namespace einrel {
namespace {

using Labels = std::vector<std::size_t>;
using LabelPerDimension = std::vector<std::optional<std::size_t>>;

bool has(const Labels& labels, std::size_t label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}
bool has(const LabelPerDimension& labels, std::size_t label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}
template <class List>
bool has_all(const List& list, const Labels& labels) {
  return std::all_of(labels.begin(), labels.end(), [&](std::size_t label) { return has(list, label); });
}

LabelUses uses_of(const Vertex& vertex) {
  LabelUses uses{label_extents(vertex).size(), {}, reduced_labels(vertex), result_labels(vertex), {}};
  for (const std::optional<std::size_t> label : uses.result) {
    if (label) uses.output.push_back(*label);
  }
  for (std::size_t o = 0; o < vertex.inputs.size(); ++o) uses.operands.push_back(operand_labels(vertex, o));
  return uses;
}

bool is_sum(const Vertex& vertex) {
  const EinSum* const einsum = einsum_of(vertex);
  return einsum != nullptr && einsum->reducer == Reducer::sum;
}

bool is_logsumexp(const Vertex& vertex) {
  const EinSum* const einsum = einsum_of(vertex);
  return einsum != nullptr && einsum->reducer == Reducer::logsumexp;
}

bool has_exponential(const Vertex& vertex) {
  const EinSum* const einsum = einsum_of(vertex);
  if (einsum == nullptr) return false;
  return std::any_of(einsum->body.steps.begin(), einsum->body.steps.end(), [](const ScalarStep& step) {
    const auto* const unary = std::get_if<ApplyUnary>(&step.op);
    return unary != nullptr && unary->function == UnaryFunction::exp;
  });
}

/// Takes the vertices once, in order, and follows what is computed element by element from products that may be scores.
class AttentionFinder {
 public:
  AttentionFinder(const EinGraph& graph, const std::vector<LabelUses>& uses)
      : graph_(graph), uses_(uses), origins_(graph.vertices.size()) {}

  AttentionOfGraph run() {
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      for (std::size_t o = 0; o < uses_[v].operands.size(); ++o) note_use(v, o);
      note_product(v);
    }
    AttentionOfGraph all;
    std::map<std::size_t, Labels> keys_of_product;
    for (const WeightedSum& sum : weighted_sums_) {
      std::optional<Attention> attention = attention_of(sum);
      if (!attention) continue;
      keys_of_product.try_emplace(sum.product, attention->key_positions);
      all.found.push_back(std::move(*attention));
    }
    for (std::size_t v = 0; v < origins_.size(); ++v) {
      const auto keys = origins_[v] ? keys_of_product.find(origins_[v]->product) : keys_of_product.end();
      if (keys == keys_of_product.end()) continue;
      for (std::size_t l = 0; l < uses_[v].count; ++l) {
        const std::optional<std::size_t> label = origins_[v]->labels[l];
        if (label && has(keys->second, *label)) all.key_labels.insert({v, l});
      }
    }
    return all;
  }

 private:
  /// A sum over products of two operands that each have labels in the result which the other has not.
  struct Product {
    std::size_t vertex = 0;
    std::array<std::size_t, 2> operands{};
    bool is_exponentiated = false;
    std::set<Labels> sums;  ///< what sums over the result, or what is computed from it, reduce
  };
  /// Computed element by element from a product: per label, the product's.
  struct Origin {
    std::size_t product = 0;
    LabelPerDimension labels;
  };
  struct WeightedSum {
    std::size_t vertex = 0;
    std::size_t weights = 0;
    std::size_t values = 0;
    std::size_t product = 0;
    Labels reduced;  ///< labels of the product
  };

  void note_product(std::size_t v) {
    const LabelUses& uses = uses_[v];
    if (!is_sum(graph_.vertices[v])) return;
    for (std::size_t a = 0; a < uses.operands.size(); ++a) {
      for (std::size_t b = a + 1; b < uses.operands.size(); ++b) {
        if (!are_factors(uses, uses.operands[a], uses.operands[b])) continue;
        LabelPerDimension own(uses.count);
        for (const std::size_t label : uses.output) own[label] = label;
        origins_[v] = Origin{products_.size(), std::move(own)};
        products_.push_back({v, {a, b}, false, {}});
        return;
      }
    }
  }

  static bool are_factors(const LabelUses& uses, const LabelPerDimension& a, const LabelPerDimension& b) {
    const auto in_both = [&](std::size_t label) { return has(a, label) && has(b, label); };
    const auto in_none = [&](std::size_t label) { return !has(a, label) && !has(b, label); };
    return std::any_of(uses.reduced.begin(), uses.reduced.end(), in_both) &&
           std::none_of(uses.output.begin(), uses.output.end(), in_none) && !has_all(a, uses.output) &&
           !has_all(b, uses.output);
  }

  /// What a vertex does with an operand that comes from a product.
  void note_use(std::size_t v, std::size_t o) {
    const std::size_t from = graph_.vertices[v].inputs[o].index;
    if (!origins_[from]) return;
    const LabelUses& uses = uses_[v];
    const std::size_t at = origins_[from]->product;
    LabelPerDimension labels(uses.count);
    for (std::size_t d = 0; d < uses.operands[o].size(); ++d) {
      const std::optional<std::size_t> inside = uses_[from].result[d];
      if (inside && uses.operands[o][d]) labels[*uses.operands[o][d]] = origins_[from]->labels[*inside];
    }
    if (has_exponential(graph_.vertices[v])) products_[at].is_exponentiated = true;
    if (uses.reduced.empty()) {
      if (!origins_[v]) origins_[v] = Origin{at, std::move(labels)};
      return;
    }
    Labels reduced;
    for (const std::size_t label : uses.reduced) {
      if (!labels[label]) return;
      reduced.push_back(*labels[label]);
    }
    std::sort(reduced.begin(), reduced.end());
    note_sum(v, o, at, reduced);
  }

  void note_sum(std::size_t v, std::size_t o, std::size_t product, const Labels& reduced) {
    const LabelUses& uses = uses_[v];
    if (is_logsumexp(graph_.vertices[v])) products_[product].is_exponentiated = true;
    if (!is_sum(graph_.vertices[v]) && !is_logsumexp(graph_.vertices[v])) return;
    if (has_all(uses.operands[o], uses.output)) {
      products_[product].sums.insert(reduced);
      return;
    }
    for (std::size_t w = 0; w < uses.operands.size(); ++w) {
      const std::optional<Origin>& origin = origins_[graph_.vertices[v].inputs[w].index];
      if ((origin && origin->product == product) || !has_all(uses.operands[w], uses.reduced)) continue;
      weighted_sums_.push_back({v, o, w, product, reduced});
      return;
    }
  }

  std::optional<Attention> attention_of(const WeightedSum& sum) const {
    const Product& product = products_[sum.product];
    if (!product.is_exponentiated || !product.sums.contains(sum.reduced)) return std::nullopt;
    const Vertex& vertex = graph_.vertices[product.vertex];
    const LabelUses& uses = uses_[product.vertex];
    Attention found{
        product.vertex, product.operands[0], product.operands[1], sum.vertex, sum.values, {}, sum.reduced, {}, {}};
    if (!has_all(uses.operands[found.keys], sum.reduced)) std::swap(found.keys, found.queries);
    const LabelPerDimension& queries = uses.operands[found.queries];
    const LabelPerDimension& keys = uses.operands[found.keys];
    const auto asked = [&](std::size_t label) { return has(queries, label); };
    if (!has_all(keys, sum.reduced) || std::any_of(sum.reduced.begin(), sum.reduced.end(), asked)) return std::nullopt;
    for (const std::size_t label : uses.output) {
      if (has(queries, label)) (has(keys, label) ? found.batch : found.positions).push_back(label);
    }
    // A hidden layer with a softmax: a product of data with weights, and one of that with weights.
    const bool are_weights =
        is_input(graph_[vertex.inputs[found.keys]]) || is_input(graph_[graph_.vertices[sum.vertex].inputs[sum.values]]);
    if (found.batch.empty() && are_weights && !is_input(graph_[vertex.inputs[found.queries]])) return std::nullopt;
    tell_heads(found);
    return found;
  }

  void tell_heads(Attention& attention) const {
    Labels of_weights = weight_labels(attention, attention.queries);
    if (of_weights.empty()) of_weights = weight_labels(attention, attention.keys);
    const auto move_heads = [&](Labels& from) {
      Labels rest;
      for (const std::size_t label : from) (has(of_weights, label) ? attention.heads : rest).push_back(label);
      from = std::move(rest);
    };
    move_heads(attention.batch);
    move_heads(attention.positions);
  }

  /// Labels of the scores that come from the weights of the product that gives the queries, or the keys: of its
  /// operands, weights are the one that has what the scores reduce. Empty where there is no such product.
  Labels weight_labels(const Attention& attention, std::size_t operand) const {
    const Labels& reduced = uses_[attention.scores].reduced;
    std::size_t v = graph_.vertices[attention.scores].inputs[operand].index;
    std::vector<Labels> tags;  // per dimension of v
    for (const std::optional<std::size_t> label : uses_[attention.scores].operands[operand]) {
      tags.push_back(label ? Labels{*label} : Labels{});
    }
    while (!is_input(graph_.vertices[v])) {
      const std::vector<std::vector<Labels>> operands = tags_of_operands(v, tags);
      std::vector<std::size_t> with_reduced;
      std::vector<Labels> all;
      for (const std::vector<Labels>& dimensions : operands) {
        all.emplace_back();
        for (const Labels& labels : dimensions) all.back().insert(all.back().end(), labels.begin(), labels.end());
        const bool has_reduced =
            std::any_of(reduced.begin(), reduced.end(), [&](auto l) { return has(all.back(), l); });
        if (has_reduced) with_reduced.push_back(all.size() - 1);
      }
      if (!uses_[v].reduced.empty()) {
        const bool is_projection = is_sum(graph_.vertices[v]) && with_reduced.size() == 1 && all.size() > 1;
        return is_projection ? all[with_reduced.front()] : Labels{};
      }
      if (all.empty()) return {};
      const auto most = std::max_element(all.begin(), all.end(),
                                         [](const Labels& a, const Labels& b) { return a.size() < b.size(); });
      const auto at = static_cast<std::size_t>(most - all.begin());
      tags = operands[at];
      v = graph_.vertices[v].inputs[at].index;
    }
    return {};
  }

  /// What dimensions of the operands become of tagged dimensions of the result: here all labels of a View's group
  /// count.
  std::vector<std::vector<Labels>> tags_of_operands(std::size_t v, const std::vector<Labels>& tags) const {
    std::vector<Labels> of_label(uses_[v].count);
    std::vector<std::vector<Labels>> operands;
    const Vertex& vertex = graph_.vertices[v];
    if (view_of(vertex) != nullptr) {
      const LabelGroups to = result_groups(vertex);
      for (std::size_t d = 0; d < tags.size(); ++d) {
        for (const std::size_t label : to[d]) of_label[label] = tags[d];
      }
      operands.emplace_back();
      for (const std::vector<std::size_t>& group : operand_groups(vertex, 0)) {
        std::set<std::size_t> joined;
        for (const std::size_t label : group) joined.insert(of_label[label].begin(), of_label[label].end());
        operands.back().emplace_back(joined.begin(), joined.end());
      }
      return operands;
    }
    for (std::size_t d = 0; d < tags.size(); ++d) of_label[uses_[v].output[d]] = tags[d];
    for (const LabelPerDimension& labels : uses_[v].operands) {
      operands.emplace_back();
      for (const auto label : labels) operands.back().push_back(label ? of_label[*label] : Labels{});
    }
    return operands;
  }

  const EinGraph& graph_;
  const std::vector<LabelUses>& uses_;
  std::vector<std::optional<Origin>> origins_;
  std::vector<Product> products_;
  std::vector<WeightedSum> weighted_sums_;
};

}  // namespace

std::vector<LabelUses> label_uses(const EinGraph& graph) {
  std::vector<LabelUses> uses;
  for (const Vertex& vertex : graph.vertices) uses.push_back(uses_of(vertex));
  return uses;
}

AttentionOfGraph find_attention(const EinGraph& graph, const std::vector<LabelUses>& uses) {
  return AttentionFinder(graph, uses).run();
}

}  // namespace einrel
