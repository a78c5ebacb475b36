#include "einsum/graph/contraction_tree.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

namespace einrel {
namespace {

constexpr std::size_t max_optimal_factors = 12;
/// Partners that the greedy search considers for one node.
constexpr std::size_t max_candidates = 64;

/// Labels ascending: of thousands of labels a factor has a few.
using LabelList = std::vector<std::size_t>;

LabelList list_of(const LabelSet& labels) {
  LabelList list;
  for (std::size_t l = 0; l < labels.size(); ++l) {
    if (labels[l]) list.push_back(l);
  }
  return list;
}

LabelList unite(const LabelList& a, const LabelList& b) {
  LabelList result;
  result.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

bool has(const LabelList& labels, std::size_t label) { return std::binary_search(labels.begin(), labels.end(), label); }

double size_of_list(const Contraction& contraction, const LabelList& labels) {
  double size = 1;
  for (const std::size_t label : labels) size *= contraction.extents[label];
  return size;
}

/// One side of a product: the labels it has as it stands, and those that are needed after the product or by the
/// other side. They differ for a factor with labels of its own.
struct Side {
  const LabelList& all;
  const LabelList& needed;
};

struct PairCost {
  double flops = 0;
  bool reduce_left_first = false;
  bool reduce_right_first = false;
};

/// The cheapest way to multiply two sides: a factor may be summed over its own labels first.
PairCost pair_cost(const Contraction& contraction, const Side& left, const Side& right, const LabelList& result) {
  PairCost best;
  best.flops = std::numeric_limits<double>::infinity();
  for (const bool reduce_left : {false, true}) {
    if (reduce_left && left.all == left.needed) continue;
    for (const bool reduce_right : {false, true}) {
      if (reduce_right && right.all == right.needed) continue;
      const LabelList loop = unite(reduce_left ? left.needed : left.all, reduce_right ? right.needed : right.all);
      double flops = size_of_list(contraction, loop) * (loop == result ? 1 : 2);
      if (reduce_left) flops += size_of_list(contraction, left.all);
      if (reduce_right) flops += size_of_list(contraction, right.all);
      if (flops < best.flops) best = {flops, reduce_left, reduce_right};
    }
  }
  return best;
}

/// Exhaustive over all binary trees.
class OptimalOrder {
 public:
  explicit OptimalOrder(const Contraction& contraction)
      : contraction_(contraction), count_(contraction.factors.size()), best_(std::size_t{1} << count_) {
    for (const LabelSet& factor : contraction.factors) factors_.push_back(list_of(factor));
  }

  ContractionTree run() {
    for (std::size_t subset = 1; subset < best_.size(); ++subset) prepare(subset);
    for (std::size_t subset = 1; subset < best_.size(); ++subset) {
      if ((subset & (subset - 1)) != 0) solve(subset);
    }
    ContractionTree tree;
    tree.optimal = true;
    tree.flops = best_.back().flops;
    tree.reduced_first.assign(count_, false);
    emit(tree);
    return tree;
  }

 private:
  struct Best {
    LabelList all;     // what a single factor carries; equal to `needed` for larger subsets
    LabelList needed;  // what the product over the subset carries
    double flops = std::numeric_limits<double>::infinity();
    std::size_t left = 0;
    PairCost pair;
  };

  void prepare(std::size_t subset) {
    LabelList inside;
    LabelList outside = list_of(contraction_.output);
    for (std::size_t f = 0; f < count_; ++f) {
      LabelList& list = ((subset >> f) & 1U) != 0 ? inside : outside;
      list = unite(list, factors_[f]);
    }
    Best& best = best_[subset];
    std::set_intersection(inside.begin(), inside.end(), outside.begin(), outside.end(),
                          std::back_inserter(best.needed));
    const bool is_factor = (subset & (subset - 1)) == 0;
    if (is_factor) best.flops = 0;
    best.all = is_factor ? inside : best.needed;
  }

  void solve(std::size_t subset) {
    Best& best = best_[subset];
    const std::size_t lowest = subset & (~subset + 1);
    for (std::size_t left = (subset - 1) & subset; left != 0; left = (left - 1) & subset) {
      if ((left & lowest) == 0) continue;  // the mirror image
      const Best& a = best_[left];
      const Best& b = best_[subset ^ left];
      if (best.left != 0 && a.flops + b.flops >= best.flops) continue;
      const PairCost pair = pair_cost(contraction_, {a.all, a.needed}, {b.all, b.needed}, best.needed);
      // The first split is taken whatever it costs: flops beyond the range of double are all infinite.
      if (best.left == 0 || a.flops + b.flops + pair.flops < best.flops) {
        best.flops = a.flops + b.flops + pair.flops;
        best.left = left;
        best.pair = pair;
      }
    }
  }

  /// Subsets in an order in which parts come first.
  // NOLINTNEXTLINE(misc-no-recursion): at most max_optimal_factors deep
  std::size_t emit_subset(std::size_t subset, ContractionTree& tree) {
    if ((subset & (subset - 1)) == 0) return static_cast<std::size_t>(__builtin_ctzll(subset));
    const Best& best = best_[subset];
    const std::size_t left = emit_subset(best.left, tree);
    const std::size_t right = emit_subset(subset ^ best.left, tree);
    if (best.pair.reduce_left_first) tree.reduced_first[left] = true;
    if (best.pair.reduce_right_first) tree.reduced_first[right] = true;
    tree.steps.emplace_back(left, right);
    return count_ + tree.steps.size() - 1;
  }

  void emit(ContractionTree& tree) { emit_subset(best_.size() - 1, tree); }

  const Contraction& contraction_;
  std::size_t count_;
  std::vector<LabelList> factors_;
  std::vector<Best> best_;
};

/// Greedy: repeatedly the pair whose product is smallest against its parts; pairs that share a label come first.
class GreedyOrder {
 public:
  explicit GreedyOrder(const Contraction& contraction)
      : contraction_(contraction), holders_(contraction.extents.size(), 0), alive_with_(contraction.extents.size()) {
    for (std::size_t l = 0; l < holders_.size(); ++l) holders_[l] = contraction.output[l] ? 1 : 0;
  }

  ContractionTree run() {
    ContractionTree tree;
    tree.reduced_first.assign(contraction_.factors.size(), false);
    std::vector<LabelList> factors;
    for (const LabelSet& factor : contraction_.factors) count_holder(factors.emplace_back(list_of(factor)), 1);
    for (LabelList& factor : factors) add_node(std::move(factor));
    while (alive_count_ > 1) merge(next_pair(), tree);
    return tree;
  }

 private:
  struct Candidate {
    double growth = 0;
    std::size_t left = 0;
    std::size_t right = 0;
    bool operator<(const Candidate& other) const {  // the top of the queue is the least growth, then the oldest
      return std::tie(other.growth, other.left, other.right) < std::tie(growth, left, right);
    }
  };

  void count_holder(const LabelList& labels, int change) {
    for (const std::size_t label : labels) holders_[label] += change;
  }

  /// What the product of two keeps.
  LabelList result_of(const LabelList& a, const LabelList& b) const {
    LabelList result = unite(a, b);
    std::erase_if(result, [&](std::size_t l) { return holders_[l] <= (has(a, l) ? 1 : 0) + (has(b, l) ? 1 : 0); });
    return result;
  }

  void add_node(LabelList labels) {
    const std::size_t node = labels_.size();
    sizes_.push_back(size_of_list(contraction_, labels));
    for (const std::size_t other : partners_of(labels)) {
      const double growth =
          size_of_list(contraction_, result_of(labels, labels_[other])) - sizes_[node] - sizes_[other];
      queue_.push({growth, other, node});
    }
    for (const std::size_t label : labels) alive_with_[label].insert(node);
    labels_.push_back(std::move(labels));
    alive_.push_back(true);
    ++alive_count_;
  }

  /// The nodes that share a label, the latest first, and only some: with thousands of factors all pairs would be too
  /// many to look at.
  std::vector<std::size_t> partners_of(const LabelList& labels) const {
    std::vector<std::size_t> partners;
    for (const std::size_t label : labels) {
      const auto& nodes = alive_with_[label];
      std::size_t left = max_candidates;
      for (auto node = nodes.begin(); node != nodes.end() && left > 0; ++node, --left) partners.push_back(*node);
    }
    std::sort(partners.begin(), partners.end(), std::greater<>());
    partners.erase(std::unique(partners.begin(), partners.end()), partners.end());
    partners.resize(std::min(partners.size(), max_candidates));
    return partners;
  }

  std::pair<std::size_t, std::size_t> next_pair() {
    while (!queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      if (alive_[top.left] && alive_[top.right]) return {top.left, top.right};
    }
    // Nothing shares a label any more: multiply the two smallest.
    std::vector<std::size_t> nodes;
    for (std::size_t node = 0; node < alive_.size(); ++node) {
      if (alive_[node]) nodes.push_back(node);
    }
    std::partial_sort(nodes.begin(), nodes.begin() + 2, nodes.end(),
                      [&](std::size_t a, std::size_t b) { return sizes_[a] < sizes_[b]; });
    return {std::min(nodes[0], nodes[1]), std::max(nodes[0], nodes[1])};
  }

  void merge(std::pair<std::size_t, std::size_t> nodes, ContractionTree& tree) {
    const auto [left, right] = nodes;
    LabelList result = result_of(labels_[left], labels_[right]);
    const LabelList needed_left = needed_by_others(left, right, result);
    const LabelList needed_right = needed_by_others(right, left, result);
    const PairCost cost = pair_cost(contraction_, {labels_[left], needed_left}, {labels_[right], needed_right}, result);
    if (cost.reduce_left_first) tree.reduced_first[left] = true;
    if (cost.reduce_right_first) tree.reduced_first[right] = true;
    tree.flops += cost.flops;
    tree.steps.emplace_back(left, right);
    for (const std::size_t node : {left, right}) {
      alive_[node] = false;
      count_holder(labels_[node], -1);
      for (const std::size_t label : labels_[node]) alive_with_[label].erase(node);
    }
    alive_count_ -= 2;
    count_holder(result, 1);
    add_node(std::move(result));
  }

  /// The labels of `node` that its partner or anything else holds. Only factors can have others.
  LabelList needed_by_others(std::size_t node, std::size_t partner, const LabelList& result) const {
    LabelList needed = labels_[node];
    if (node >= contraction_.factors.size()) return needed;
    std::erase_if(needed, [&](std::size_t l) { return !has(result, l) && !has(labels_[partner], l); });
    return needed;
  }

  const Contraction& contraction_;
  std::vector<int> holders_;                                       // per label: nodes that carry it, and the output
  std::vector<std::set<std::size_t, std::greater<>>> alive_with_;  // per label: nodes that carry it
  std::vector<LabelList> labels_;
  std::vector<double> sizes_;
  std::vector<bool> alive_;
  std::size_t alive_count_ = 0;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

ContractionTree find_contraction_tree(const Contraction& contraction) {
  if (contraction.factors.size() <= max_optimal_factors) return OptimalOrder(contraction).run();
  return GreedyOrder(contraction).run();
}

}  // namespace einrel
