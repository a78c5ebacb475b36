#include "einsum/passes/contraction_order.h"

#include <algorithm>
#include <limits>

#include "einsum/graph/contraction_tree.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/graph/vertex_splitter.h"

namespace einrel {
namespace {

/// A body as a product: `factors` multiplied, divided by all `divisors`, and negated or not.
struct ProductBody {
  std::vector<ScalarExpr> factors;
  std::vector<ScalarExpr> divisors;
  bool negated = false;
};

/// One factor, the body itself, when it is no product. Only what computes in one type is taken apart: a conversion of a
/// product is a factor.
ProductBody product_of(const ScalarExpr& body) {
  const std::vector<std::size_t> starts = subexpression_starts(body);
  const auto range = [&](std::size_t root) {
    return ScalarExpr{{body.steps.begin() + static_cast<std::ptrdiff_t>(starts[root]),
                       body.steps.begin() + static_cast<std::ptrdiff_t>(root) + 1}};
  };
  const auto is_binary = [&](std::size_t root, BinaryFunction function) {
    const auto* binary = std::get_if<ApplyBinary>(&body.steps[root].op);
    return binary != nullptr && binary->function == function;
  };
  ProductBody product;
  std::vector<std::size_t> open{body.steps.size() - 1};  // roots; the leftmost factor is on top
  while (!open.empty()) {
    const std::size_t root = open.back();
    open.pop_back();
    const auto* const unary = std::get_if<ApplyUnary>(&body.steps[root].op);
    if (is_binary(root, BinaryFunction::multiply)) {
      open.push_back(root - 1);
      open.push_back(starts[root - 1] - 1);
    } else if (is_binary(root, BinaryFunction::divide)) {
      product.divisors.push_back(range(root - 1));
      open.push_back(starts[root - 1] - 1);
    } else if (unary != nullptr && unary->function == UnaryFunction::negate) {
      product.negated = !product.negated;
      open.push_back(root - 1);
    } else {
      product.factors.push_back(range(root));
    }
  }
  return product;
}

bool has_labels(const LabelSet& labels) { return std::find(labels.begin(), labels.end(), true) != labels.end(); }

bool overlap(const LabelSet& a, const LabelSet& b) {
  for (std::size_t l = 0; l < a.size(); ++l) {
    if (a[l] && b[l]) return true;
  }
  return false;
}

LabelSet united(LabelSet a, const LabelSet& b) {
  for (std::size_t l = 0; l < a.size(); ++l) a[l] = a[l] || b[l];
  return a;
}

ScalarExpr combine(ScalarExpr a, const ScalarExpr& b, BinaryFunction function) {
  const DType type = a.type();
  a.steps.insert(a.steps.end(), b.steps.begin(), b.steps.end());
  a.steps.push_back({type, ApplyBinary{function}});
  return a;
}

/// Replaces one vertex by the steps of a product.
class ProductOrder {
 public:
  explicit ProductOrder(VertexSplitter splitter)
      : splitter_(std::move(splitter)), einsum_(splitter_.einsum()), reducer_(einsum_.reducer.value_or(Reducer::sum)) {}

  /// True when it appended the vertices that replace the original one.
  bool run(const EinGraph& graph, OrderedContraction& report) {
    const bool is_mean = einsum_.reducer == Reducer::mean && is_float(einsum_.body.type());
    if ((einsum_.reducer != Reducer::sum && !is_mean) || splitter_.has_no_bindings()) return false;
    const ProductBody product = product_of(einsum_.body);
    const std::size_t factors = take_factors(product);
    if (nodes_.size() < 2 || !place_divisors(product)) return false;
    ContractionTree tree = find_contraction_tree(describe());
    if (is_mean && nodes_.size() == 2) tree.reduced_first.assign(2, false);  // what is averaged is the product
    if (is_mean && nodes_.size() > 2) sum_instead_of_mean();
    const bool reduces_first =
        std::find(tree.reduced_first.begin(), tree.reduced_first.end(), true) != tree.reduced_first.end();
    if (factors == 2 && !reduces_first) return false;
    apply_constants(tree);
    build(tree);
    if (!splitter_.keep_what_fits()) return false;
    report.factors = factors;
    report.optimal = tree.optimal;
    report.flops_as_written = flops(splitter_.vertex());
    for (std::size_t v = splitter_.first_added(); v < graph.vertices.size(); ++v) {
      report.flops_ordered += flops(graph.vertices[v]);
      report.steps.push_back(graph.vertices[v].name);
    }
    return true;
  }

 private:
  /// Factors with labels become nodes, the others constants. Gives how many there are, with divisors and with a sign
  /// that no kernel takes along.
  std::size_t take_factors(const ProductBody& product) {
    for (const ScalarExpr& factor : product.factors) {
      LabelSet labels = splitter_.labels_of(factor);
      if (has_labels(labels))
        nodes_.push_back({factor, std::move(labels)});
      else
        constants_.push_back({factor, BinaryFunction::multiply});
    }
    is_negated_ = product.negated;
    const bool counts_sign = is_negated_ && is_integer(einsum_.body.type());
    return product.factors.size() + product.divisors.size() + (counts_sign ? 1 : 0);
  }

  /// Each divisor divides one factor, or the sum if no label of it is summed: whatever has fewest elements. False when
  /// one has nowhere to go where it saves divisions.
  bool place_divisors(const ProductBody& product) {
    constexpr double least_gain = 4;
    const double most = splitter_.elements(splitter_.all_labels()) / least_gain;
    LabelSet reduced(einsum_.labels.size(), false);
    for (const std::size_t label : einsum_.reduced) reduced[label] = true;
    for (const ScalarExpr& divisor : product.divisors) {
      const LabelSet labels = splitter_.labels_of(divisor);
      const auto cost = [&](const BodyPart& node) { return splitter_.elements(united(node.labels, labels)); };
      const auto best = nodes_.begin() + cheapest_with(labels);
      const double of_result = splitter_.elements(splitter_.output_labels());
      if (!has_labels(labels)) {
        if (cost(*best) > most) return false;
        constants_.push_back({divisor, BinaryFunction::divide});
      } else if (!overlap(labels, reduced) && of_result < cost(*best)) {
        if (of_result > most) return false;
        of_sum_.push_back(divisor);
      } else {
        if (cost(*best) > most) return false;
        *best = {combine(best->expr, divisor, BinaryFunction::divide), united(best->labels, labels)};
        node_elements_[static_cast<std::size_t>(best - nodes_.begin())] = splitter_.elements(best->labels);
      }
    }
    return true;
  }

  /// The node that has fewest elements together with more labels. O(nodes * labels added): there can be thousands.
  std::ptrdiff_t cheapest_with(const LabelSet& labels) {
    std::vector<std::size_t> added;
    for (std::size_t l = 0; l < labels.size(); ++l) {
      if (labels[l]) added.push_back(l);
    }
    while (node_elements_.size() < nodes_.size())
      node_elements_.push_back(splitter_.elements(nodes_[node_elements_.size()].labels));
    std::ptrdiff_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      double cost = node_elements_[n];
      for (const std::size_t label : added) {
        if (!nodes_[n].labels[label]) cost *= static_cast<double>(einsum_.labels[label].extent.value());
      }
      if (cost >= least) continue;
      least = cost;
      best = static_cast<std::ptrdiff_t>(n);
    }
    return best;
  }

  /// What is summed on the way is summed over some of the labels only: the number of all divides the last sum.
  void sum_instead_of_mean() {
    double count = 1;
    for (const std::size_t label : einsum_.reduced) count *= static_cast<double>(einsum_.labels[label].extent.value());
    reducer_ = Reducer::sum;
    of_sum_.push_back({{{einsum_.body.type(), Constant{count}}}});
  }

  Contraction describe() const {
    Contraction contraction;
    contraction.output = splitter_.output_labels();
    for (const Label& label : einsum_.labels) contraction.extents.push_back(static_cast<double>(label.extent.value()));
    for (const BodyPart& node : nodes_) contraction.factors.push_back(node.labels);
    return contraction;
  }

  /// Factors without labels go into the smallest factor, before anything is summed: after the sum they could be too
  /// late to keep it in range.
  void apply_constants(const ContractionTree& tree) {
    if (constants_.empty() && !is_negated_) return;
    const auto smallest = std::min_element(nodes_.begin(), nodes_.end(), [&](const BodyPart& a, const BodyPart& b) {
      return splitter_.elements(a.labels) < splitter_.elements(b.labels);
    });
    for (const Unlabelled& constant : constants_) {
      smallest->expr = combine(smallest->expr, constant.expr, constant.function);
    }
    if (is_negated_) smallest->expr.steps.push_back({smallest->expr.type(), ApplyUnary{UnaryFunction::negate}});
    // A factor that is summed alone takes the constants along; another one becomes a tensor, so that what multiplies it
    // stays a plain contraction.
    const bool is_reduced_first = tree.reduced_first[static_cast<std::size_t>(smallest - nodes_.begin())];
    if (!is_reduced_first) *smallest = splitter_.intermediate(smallest->expr, smallest->labels, smallest->labels);
  }

  void build(const ContractionTree& tree) {
    holders_.assign(einsum_.labels.size(), 0);
    for (const std::size_t label : einsum_.output) ++holders_[label];
    for (const BodyPart& node : nodes_) count_holder(node.labels, 1);
    for (std::size_t f = 0; f < tree.reduced_first.size(); ++f) {
      if (tree.reduced_first[f]) reduce_alone(f);
    }
    for (std::size_t s = 0; s < tree.steps.size(); ++s) {
      const auto [left, right] = tree.steps[s];
      const ScalarExpr body = combine(nodes_[left].expr, nodes_[right].expr, BinaryFunction::multiply);
      const LabelSet all = united(nodes_[left].labels, nodes_[right].labels);
      if (s + 1 == tree.steps.size()) return finish(body, all);
      count_holder(nodes_[left].labels, -1);
      count_holder(nodes_[right].labels, -1);
      nodes_.push_back(splitter_.intermediate(body, all, held_labels()));
      count_holder(nodes_.back().labels, 1);
    }
  }

  void count_holder(const LabelSet& labels, int change) {
    for (std::size_t l = 0; l < labels.size(); ++l) holders_[l] += labels[l] ? change : 0;
  }
  LabelSet held_labels() const {
    LabelSet held(holders_.size(), false);
    for (std::size_t l = 0; l < held.size(); ++l) held[l] = holders_[l] > 0;
    return held;
  }

  /// The last product, and the divisions of its sum.
  void finish(const ScalarExpr& body, const LabelSet& all) {
    if (of_sum_.empty()) return splitter_.finish(body, all, reducer_);
    const LabelSet kept = splitter_.output_labels();
    ScalarExpr sum = splitter_.intermediate(body, all, kept, reducer_).expr;
    for (const ScalarExpr& divisor : of_sum_) sum = combine(std::move(sum), divisor, BinaryFunction::divide);
    splitter_.finish(sum, kept, std::nullopt);
  }

  /// Sums a factor over the labels that only it has.
  void reduce_alone(std::size_t factor) {
    BodyPart& node = nodes_[factor];
    count_holder(node.labels, -1);
    node = splitter_.intermediate(node.expr, node.labels, held_labels());
    count_holder(node.labels, 1);
  }

  /// A factor or divisor without labels.
  struct Unlabelled {
    ScalarExpr expr;
    BinaryFunction function;
  };

  VertexSplitter splitter_;
  const EinSum& einsum_;
  Reducer reducer_;  ///< of the last product
  std::vector<BodyPart> nodes_;
  std::vector<Unlabelled> constants_;
  std::vector<ScalarExpr> of_sum_;     ///< divide it when it is complete
  std::vector<double> node_elements_;  ///< of those of nodes_ that were looked at
  std::vector<int> holders_;           ///< per label: nodes that are not multiplied yet and have it, and the output
  bool is_negated_ = false;
};

}  // namespace

EinGraph order_contractions(const EinGraph& graph, std::vector<OrderedContraction>& report) {
  return replace_vertices(graph, [&](const Vertex& vertex, VertexSplitter splitter, const EinGraph& result) {
    OrderedContraction ordered;
    ordered.tensor = vertex.name;
    const bool is_replaced = ProductOrder(std::move(splitter)).run(result, ordered);
    if (is_replaced) report.push_back(std::move(ordered));
    return is_replaced;
  });
}

}  // namespace einrel
