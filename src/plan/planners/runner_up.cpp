#include "plan/planners/runner_up.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>

#include "einsum/graph/vertex_facts.h"
#include "plan/planners/eindecomp.h"
#include "plan/refine/changing_costs.h"
#include "plan/refine/likeness.h"
#include "plan/refine/ordered_candidates.h"
#include "plan/refine/polish.h"
#include "plan/refine/reduce_as_received.h"
#include "plan/spmd.h"

namespace einrel {
namespace {

/// What is known of a vertex, of another one that is like it.
RunnerUp alike(const Likeness& likeness, std::size_t v, std::size_t first, RunnerUp known) {
  const std::vector<std::size_t> there = likeness.around(first);
  const std::vector<std::size_t> here = likeness.around(v);
  const auto counterpart = [&](std::size_t vertex) {
    const auto at = std::find(there.begin(), there.end(), vertex);
    return at == there.end() ? v : here[static_cast<std::size_t>(at - there.begin())];
  };
  known.producer = counterpart(known.producer);
  known.consumer = counterpart(known.consumer);
  return known;
}

/// Of a plan of a single program for all sites, what such a program can say.
Candidates candidates_beside(const EinGraph& graph, const Plan& plan, CostKind kind) {
  if (!plan.is_spmd) return all_candidates(graph, plan.sites, kind);
  return [&graph, sites = plan.sites](const Vertex&, std::size_t v) { return spmd_candidates(graph, v, sites); };
}

/// The state whose next value a tensor is; of others itself.
std::size_t state_after(const EinGraph& graph, std::size_t tensor) {
  for (const State& state : graph.steps.states) {
    if (state.next && graph.outputs[*state.next].index == tensor) return state.now.index;
  }
  return tensor;
}

/// Of a change of v, what costs more for it, and where most.
RunnerUp runner_up(const EinGraph& graph, const Likeness& likeness, std::size_t v, const ChangingCosts::Costed& now,
                   const ChangingCosts::Change& change) {
  RunnerUp other{change.plans.front().second, change.total - now.total, v, v, change.alone - now.alone[v]};
  for (const auto& [tensor, cost] : change.moves) {
    const double more = cost - now.moves[tensor];
    if (more <= other.more_there) continue;
    other.more_there = more;
    other.producer = tensor;
    const std::vector<std::size_t>& readers = likeness.readers(tensor);
    const bool is_read_here = std::find(readers.begin(), readers.end(), v) != readers.end();
    other.consumer = is_read_here ? v : readers.empty() ? state_after(graph, tensor) : readers.front();
  }
  return other;
}

const VertexPlan& cut_by(const ChangingCosts::Change& change) { return change.plans.front().second; }

/// The cheapest changes of a vertex, in order: of those that differ in the numbers of sites alone the cheapest.
class CheapestCuts {
 public:
  using Change = ChangingCosts::Change;

  explicit CheapestCuts(std::size_t most) : most_(most) {}

  /// What another one has to cost less than.
  double enough() const {
    const bool is_full = !changes_.empty() && changes_.size() >= most_;
    return is_full ? changes_.back().total : std::numeric_limits<double>::infinity();
  }

  void add(Change change) {
    const auto is_same = [&](const Change& known) { return is_cut_alike(cut_by(known), cut_by(change)); };
    const auto same = std::find_if(changes_.begin(), changes_.end(), is_same);
    if (same != changes_.end() && same->total <= change.total) return;
    std::erase_if(changes_, is_same);
    const auto place = std::upper_bound(changes_.begin(), changes_.end(), change,
                                        [](const Change& a, const Change& b) { return a.total < b.total; });
    changes_.insert(place, std::move(change));
    if (changes_.size() > most_) changes_.pop_back();
  }

  const std::vector<Change>& found() const { return changes_; }

 private:
  std::size_t most_;
  std::vector<Change> changes_;
};

/// The vertices that are computed, those together that are alike.
std::vector<std::vector<std::size_t>> alike_vertices(const EinGraph& graph, const Likeness& likeness) {
  std::map<std::vector<std::size_t>, std::vector<std::size_t>> kinds;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (!is_input(graph.vertices[v])) kinds[likeness.of(v)].push_back(v);
  }
  std::vector<std::vector<std::size_t>> alike;
  for (auto& [kind, vertices] : kinds) alike.push_back(std::move(vertices));
  std::sort(alike.begin(), alike.end());
  return alike;
}

}  // namespace

std::vector<OtherCuts> other_cuts(const EinGraph& graph, const Plan& plan, const Machine& machine, CostKind kind,
                                  std::size_t most) {
  std::vector<OtherCuts> result;
  Transfers transfers(plan.sites, machine);
  ChangingCosts costs(graph, plan, machine, kind, transfers);
  OrderedCandidates candidates(graph, candidates_beside(graph, plan, kind), plan.is_spmd);
  const Plan at_once = reduced_at_once(graph, plan);
  const Likeness likeness(graph, plan);
  const std::vector<std::vector<std::size_t>> kinds = alike_vertices(graph, likeness);
  // Fewer sites always receive less.
  const bool may_idle = kind == CostKind::seconds || !uses_all_sites(graph, at_once, machine);
  constexpr std::int64_t fewest = 16;
  const std::int64_t each = std::max(changes_to_try(plan.sites) / std::max<std::int64_t>(std::ssize(kinds), 1), fewest);
  for (const std::vector<std::size_t>& vertices : kinds) {
    const std::size_t v = vertices.front();
    const auto is_other = [&](const ChangingCosts::Change& change) {
      if (is_cut_alike(cut_by(change), at_once.vertices[v])) return false;
      if (may_idle) return true;
      Plan other = at_once;
      other.vertices[v] = cut_by(change);
      return uses_all_sites(graph, other, machine);
    };
    CheapestCuts cheapest(most);
    // The best first, and then the others: the more are wanted, the fewer ways can be left out unseen.
    std::int64_t tried = 0;
    auto best = least_change(v, candidates, costs, cheapest.enough(), tried, each, is_other);
    if (best) cheapest.add(std::move(*best));
    tried = 0;
    for (const OrderedCandidate& candidate : candidates.of(v, costs)) {
      if (costs.total_without(v) + candidate.alone >= cheapest.enough() || tried >= each) break;
      if (candidate.plan == costs.now().plan.vertices[v]) continue;
      tried += costs.effort(v);
      auto change = costs.with(v, candidate.plan, cheapest.enough());
      if (change && is_other(*change)) cheapest.add(std::move(*change));
    }
    OtherCuts& others = result.emplace_back(OtherCuts{vertices, {}});
    for (const ChangingCosts::Change& change : cheapest.found())
      others.best.push_back(runner_up(graph, likeness, v, costs.now(), change));
  }
  return result;
}

std::vector<std::optional<RunnerUp>> runners_up(const EinGraph& graph, const Plan& plan,
                                                const std::vector<OtherCuts>& others) {
  std::vector<std::optional<RunnerUp>> result(graph.vertices.size());
  const Likeness likeness(graph, plan);
  for (const OtherCuts& of : others) {
    if (of.best.empty()) continue;
    for (const std::size_t v : of.vertices) result[v] = alike(likeness, v, of.vertices.front(), of.best.front());
  }
  return result;
}

}  // namespace einrel
