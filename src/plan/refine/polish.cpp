#include "plan/refine/polish.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "plan/placed_inputs.h"
#include "plan/refine/changing_costs.h"
#include "plan/refine/likeness.h"
#include "plan/refine/ordered_candidates.h"
#include "plan/transfers.h"

namespace einrel {
namespace {

/// Gains below this part of the whole are rounding.
constexpr double rounding = 1e-9;

class Polish {
 public:
  Polish(const EinGraph& graph, const Plan& plan, const Machine& machine, const PolishOptions& options)
      : graph_(graph),
        transfers_(plan.sites, machine),
        costs_(graph, plan, machine, options.kind, transfers_),
        options_(options),
        candidates_(graph, options.candidates),
        likeness_(graph, plan),
        neighbours_(graph.vertices.size()) {
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      for (const VertexId input : graph.vertices[v].inputs) {
        if (is_input(graph[input])) continue;
        neighbours_[v].push_back(input.index);
        neighbours_[input.index].push_back(v);
      }
    }
  }

  Plan run() {
    bool has_changed = true;
    while (has_changed && goes_on()) {
      has_changed = false;
      for (std::size_t v = 0; v < graph_.vertices.size() && goes_on(); ++v) has_changed |= improve(v);
      if (has_changed) continue;
      for (std::size_t v = 0; v < graph_.vertices.size() && goes_on(); ++v) has_changed |= improve_with_neighbours(v);
    }
    return costs_.now().plan;
  }

 private:
  using Change = ChangingCosts::Change;

  bool goes_on() const { return tried_ < options_.changes_tried; }
  double enough() const { return (1 - rounding) * costs_.now().total; }

  void take(const Change& change) {
    costs_.take(change);
    for (const auto& [v, plan] : change.plans) {
      likeness_.change(v, plan);
      taken_.push_back(v);
    }
  }

  std::optional<Change> best_change(std::size_t v, double enough) {
    return least_change(v, candidates_, costs_, enough, tried_, options_.changes_tried,
                        [&](const Change& change) { return is_allowed(change); });
  }

  /// To ask takes about as long as to try a change of each vertex.
  bool is_allowed(const Change& change) {
    if (!options_.is_allowed) return true;
    tried_ += std::ssize(graph_.vertices);
    Plan plan = costs_.now().plan;
    for (const auto& [v, own] : change.plans) plan.vertices[v] = own;
    return options_.is_allowed(plan);
  }

  /// The same change helps vertices that are alike, if it helps one.
  bool improve(std::size_t v) {
    const auto [known, is_new] = improved_.try_emplace(likeness_.of(v));
    std::optional<Change> change;
    if (is_new) {
      change = lies_freely(graph_.vertices[v]) ? laid_out(v) : best_change(v, enough());
      if (change) known->second = change->plans.front().second;
    } else if (known->second) {
      change = lies_freely(graph_.vertices[v]) ? laid_out(v) : changed_alike(v, *known->second);
    }
    if (change) take(*change);
    return change.has_value();
  }

  std::optional<Change> changed_alike(std::size_t v, const VertexPlan& plan) {
    tried_ += costs_.effort(v);
    std::optional<Change> change = costs_.with(v, plan, enough());
    if (change && !is_allowed(*change)) change.reset();
    return change;
  }

  std::optional<Change> laid_out(std::size_t input) {
    tried_ += costs_.effort(input);
    std::optional<Change> change = costs_.with_laid_out(input);
    if (change && (change->total >= enough() || !is_allowed(*change))) change.reset();
    return change;
  }

  /// The few best changes of a vertex, each with its neighbours changed, one after the other, to what is best then.
  bool improve_with_neighbours(std::size_t v) {
    if (!tried_with_neighbours_.insert(likeness_with_neighbours(v)).second) return false;
    const ChangingCosts::Costed before = costs_.now();
    for (const Change& change : few_best_changes(v)) {
      if (!goes_on()) break;
      taken_.clear();
      take(change);
      for (const std::size_t other : neighbours_[v]) {
        if (const auto follows = best_change(other, costs_.now().total)) take(*follows);
      }
      const bool is_better = costs_.now().total < (1 - rounding) * before.total;
      if (is_better && (!options_.is_allowed || options_.is_allowed(costs_.now().plan))) return true;
      restore(before);
    }
    return false;
  }

  std::vector<std::vector<std::size_t>> likeness_with_neighbours(std::size_t v) const {
    std::vector<std::vector<std::size_t>> likeness{likeness_.of(v)};
    for (const std::size_t other : neighbours_[v]) likeness.push_back(likeness_.of(other));
    return likeness;
  }

  /// What changes of the neighbours of a vertex may gain at most, after a change of that: all that moves, and what they
  /// cost alone above the least.
  double gain_of_neighbours(std::size_t v, const Change& change) {
    std::set<std::size_t> moved;
    double gain = 0;
    for (const std::size_t other : neighbours_[v]) {
      const std::vector<OrderedCandidate>& ways = candidates_.of(other, costs_);
      if (!ways.empty()) gain += std::max(costs_.now().alone[other] - ways.front().alone, 0.0);
      for (const std::size_t tensor : costs_.moved_with(other)) moved.insert(tensor);
    }
    for (const auto& [tensor, cost] : change.moves) {
      if (moved.erase(tensor) > 0) gain += cost;
    }
    for (const std::size_t tensor : moved) gain += costs_.now().moves[tensor];
    return gain;
  }

  std::vector<Change> few_best_changes(std::size_t v) {
    constexpr std::size_t few = 8;
    std::vector<Change> changes;
    const double without = costs_.total_without(v);
    const std::int64_t effort = costs_.effort(v);
    double enough = std::numeric_limits<double>::infinity();
    for (const OrderedCandidate& candidate : candidates_.of(v, costs_)) {
      if (without + candidate.alone >= enough || !goes_on()) break;
      if (candidate.plan == costs_.now().plan.vertices[v]) continue;
      tried_ += effort;
      auto change = costs_.with(v, candidate.plan, enough);
      if (!change || change->total - gain_of_neighbours(v, *change) >= this->enough()) continue;
      const auto place = std::upper_bound(changes.begin(), changes.end(), *change,
                                          [](const Change& a, const Change& b) { return a.total < b.total; });
      changes.insert(place, std::move(*change));
      if (changes.size() > few) changes.pop_back();
      if (changes.size() == few) enough = changes.back().total;
    }
    return changes;
  }

  void restore(const ChangingCosts::Costed& before) {
    for (const std::size_t v : taken_) likeness_.change(v, before.plan.vertices[v]);
    costs_.restore(before);
  }

  const EinGraph& graph_;
  Transfers transfers_;
  ChangingCosts costs_;
  const PolishOptions& options_;
  OrderedCandidates candidates_;
  Likeness likeness_;
  std::vector<std::vector<std::size_t>> neighbours_;
  std::vector<std::size_t> taken_;                                          // vertices that changes were taken of
  std::map<std::vector<std::size_t>, std::optional<VertexPlan>> improved_;  // by likeness, to what, if to anything
  std::set<std::vector<std::vector<std::size_t>>> tried_with_neighbours_;   // likeness of these
  std::int64_t tried_ = 0;
};

}  // namespace

Plan polished(const EinGraph& graph, const Plan& plan, const Machine& machine, const PolishOptions& options) {
  return Polish(graph, plan, machine, options).run();
}

}  // namespace einrel
