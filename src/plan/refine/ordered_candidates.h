#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/plan.h"
#include "plan/refine/changing_costs.h"
#include "plan/search/search.h"

namespace einrel {

/// A way to compute a vertex, sites numbered, and what it costs alone at least.
struct OrderedCandidate {
  VertexPlan plan;
  double alone = 0;
};

/// All ways to compute each vertex, those that cost least alone at least first, so that a search for a cheaper one ends
/// with the first that costs too much without all that is moved. Vertices that compute the same have the same, made
/// once.
class OrderedCandidates {
 public:
  /// `graph` must outlive it. `are_numbered`: the candidates' own numbers of sites are the ones that are looked at.
  OrderedCandidates(const EinGraph& graph, Candidates candidates, bool are_numbered = false);

  /// Else sites are numbered in all orders of at most four digits, copies among them, as far as there are some thousand
  /// ways in all; in one order else. `costs` says what they cost alone.
  const std::vector<OrderedCandidate>& of(std::size_t v, ChangingCosts& costs);

 private:
  std::vector<VertexPlan> numbered(std::size_t v) const;

  const EinGraph& graph_;
  Candidates candidates_;
  bool are_numbered_;
  std::unordered_map<std::string, std::vector<OrderedCandidate>> known_;  // by what a vertex computes
  std::vector<const std::vector<OrderedCandidate>*> of_vertex_;
};

/// The least change of a vertex that costs less than `enough`, of those that `is_meant`. `tried` counts how many were
/// looked at; there are `most` in all.
template <class IsMeant>
std::optional<ChangingCosts::Change> least_change(std::size_t v, OrderedCandidates& candidates, ChangingCosts& costs,
                                                  double enough, std::int64_t& tried, std::int64_t most,
                                                  IsMeant is_meant) {
  std::optional<ChangingCosts::Change> best;
  const double without = costs.total_without(v);
  const std::int64_t effort = costs.effort(v);
  for (const OrderedCandidate& candidate : candidates.of(v, costs)) {
    if (without + candidate.alone >= enough || tried >= most) break;
    if (candidate.plan == costs.now().plan.vertices[v]) continue;
    tried += effort;
    std::optional<ChangingCosts::Change> change = costs.with(v, candidate.plan, enough);
    if (!change || !is_meant(*change)) continue;
    enough = change->total;
    best = std::move(change);
  }
  return best;
}

}  // namespace einrel
