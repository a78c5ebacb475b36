#include "einsum/contraction_tree.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

namespace einrel {
namespace {

constexpr std::size_t max_optimal_factors = 12;
/// Partners that the greedy search considers for one node.
constexpr std::size_t max_candidates = 64;

LabelSet unite(const LabelSet& a, const LabelSet& b) {
  LabelSet result = a;
  for (std::size_t l = 0; l < b.size(); ++l) {
    if (b[l]) result[l] = true;
  }
  return result;
}

double size_of_set(const Contraction& contraction, const LabelSet& labels) {
  double size = 1;
  for (std::size_t l = 0; l < labels.size(); ++l) {
    if (labels[l]) size *= contraction.extents[l];
  }
  return size;
}

/// One side of a product: the labels it has as it stands, and those that are needed after the product or by the
/// other side. They differ for a factor with labels of its own.
struct Side {
  const LabelSet& all;
  const LabelSet& needed;
};

struct PairCost {
  double flops = 0;
  bool reduce_left_first = false;
  bool reduce_right_first = false;
};

/// The cheapest way to multiply two sides: a factor may be summed over its own labels first.
PairCost pair_cost(const Contraction& contraction, const Side& left, const Side& right, const LabelSet& result) {
  PairCost best;
  best.flops = std::numeric_limits<double>::infinity();
  for (const bool reduce_left : {false, true}) {
    if (reduce_left && left.all == left.needed) continue;
    for (const bool reduce_right : {false, true}) {
      if (reduce_right && right.all == right.needed) continue;
      const LabelSet loop = unite(reduce_left ? left.needed : left.all, reduce_right ? right.needed : right.all);
      double flops = size_of_set(contraction, loop) * (loop == result ? 1 : 2);
      if (reduce_left) flops += size_of_set(contraction, left.all);
      if (reduce_right) flops += size_of_set(contraction, right.all);
      if (flops < best.flops) best = {flops, reduce_left, reduce_right};
    }
  }
  return best;
}

/// Exhaustive over all binary trees.
class OptimalOrder {
 public:
  explicit OptimalOrder(const Contraction& contraction)
      : contraction_(contraction), count_(contraction.factors.size()), best_(std::size_t{1} << count_) {}

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
    LabelSet all;     // what a single factor carries; equal to `needed` for larger subsets
    LabelSet needed;  // what the product over the subset carries
    double flops = std::numeric_limits<double>::infinity();
    std::size_t left = 0;
    PairCost pair;
  };

  void prepare(std::size_t subset) {
    LabelSet inside(contraction_.extents.size(), false);
    LabelSet outside = contraction_.output;
    for (std::size_t f = 0; f < count_; ++f) {
      LabelSet& set = ((subset >> f) & 1U) != 0 ? inside : outside;
      set = unite(set, contraction_.factors[f]);
    }
    Best& best = best_[subset];
    best.all = inside;
    for (std::size_t l = 0; l < inside.size(); ++l) inside[l] = inside[l] && outside[l];
    best.needed = inside;
    if ((subset & (subset - 1)) == 0)
      best.flops = 0;
    else
      best.all = best.needed;
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
  std::vector<Best> best_;
};

/// Greedy: repeatedly the pair whose product is smallest against its parts; pairs that share a label come first.
class GreedyOrder {
 public:
  explicit GreedyOrder(const Contraction& contraction)
      : contraction_(contraction), holders_(contraction.extents.size(), 0) {
    for (std::size_t l = 0; l < holders_.size(); ++l) holders_[l] = contraction.output[l] ? 1 : 0;
    for (const LabelSet& factor : contraction.factors) {
      for (std::size_t l = 0; l < factor.size(); ++l) holders_[l] += factor[l] ? 1 : 0;
    }
  }

  ContractionTree run() {
    ContractionTree tree;
    tree.reduced_first.assign(contraction_.factors.size(), false);
    for (const LabelSet& factor : contraction_.factors) add_node(factor);
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

  LabelSet result_of(const LabelSet& a, const LabelSet& b) const {
    LabelSet result = unite(a, b);
    for (std::size_t l = 0; l < result.size(); ++l) {
      if (result[l]) result[l] = holders_[l] > (a[l] ? 1 : 0) + (b[l] ? 1 : 0);
    }
    return result;
  }

  void add_node(const LabelSet& labels) {
    const std::size_t node = labels_.size();
    labels_.push_back(labels);
    alive_.push_back(true);
    ++alive_count_;
    // The latest nodes first, and only some: with thousands of factors all pairs would be too many to look at.
    std::size_t candidates = 0;
    for (std::size_t other = node; other-- > 0 && candidates < max_candidates;) {
      if (!alive_[other]) continue;
      const LabelSet& b = labels_[other];
      bool shares = false;
      for (std::size_t l = 0; l < labels.size() && !shares; ++l) shares = labels[l] && b[l];
      if (!shares) continue;
      ++candidates;
      const double growth = size_of_set(contraction_, result_of(labels, b)) - size_of_set(contraction_, labels) -
                            size_of_set(contraction_, b);
      queue_.push({growth, other, node});
    }
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
    std::partial_sort(nodes.begin(), nodes.begin() + 2, nodes.end(), [&](std::size_t a, std::size_t b) {
      return size_of_set(contraction_, labels_[a]) < size_of_set(contraction_, labels_[b]);
    });
    return {std::min(nodes[0], nodes[1]), std::max(nodes[0], nodes[1])};
  }

  void merge(std::pair<std::size_t, std::size_t> nodes, ContractionTree& tree) {
    const auto [left, right] = nodes;
    const LabelSet result = result_of(labels_[left], labels_[right]);
    const LabelSet needed_left = needed_by_others(left, right, result);
    const LabelSet needed_right = needed_by_others(right, left, result);
    const PairCost cost = pair_cost(contraction_, {labels_[left], needed_left}, {labels_[right], needed_right}, result);
    if (cost.reduce_left_first) tree.reduced_first[left] = true;
    if (cost.reduce_right_first) tree.reduced_first[right] = true;
    tree.flops += cost.flops;
    tree.steps.emplace_back(left, right);
    for (const std::size_t node : {left, right}) {
      alive_[node] = false;
      for (std::size_t l = 0; l < holders_.size(); ++l) holders_[l] -= labels_[node][l] ? 1 : 0;
    }
    alive_count_ -= 2;
    for (std::size_t l = 0; l < holders_.size(); ++l) holders_[l] += result[l] ? 1 : 0;
    add_node(result);
  }

  /// The labels of `node` that its partner or anything else holds. Only factors can have others.
  LabelSet needed_by_others(std::size_t node, std::size_t partner, const LabelSet& result) const {
    LabelSet needed = labels_[node];
    if (node >= contraction_.factors.size()) return needed;
    for (std::size_t l = 0; l < needed.size(); ++l) needed[l] = needed[l] && (result[l] || labels_[partner][l]);
    return needed;
  }

  const Contraction& contraction_;
  std::vector<int> holders_;  // per label: nodes that carry it, and the output
  std::vector<LabelSet> labels_;
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
