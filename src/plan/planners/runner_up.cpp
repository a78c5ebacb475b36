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

}  // namespace

std::vector<std::optional<RunnerUp>> runners_up(const EinGraph& graph, const Plan& plan, const Machine& machine,
                                                CostKind kind) {
  std::vector<std::optional<RunnerUp>> result(graph.vertices.size());
  Transfers transfers(plan.sites, machine);
  ChangingCosts costs(graph, plan, machine, kind, transfers);
  OrderedCandidates candidates(graph, all_candidates(graph, plan.sites, kind));
  const Plan at_once = reduced_at_once(graph, plan);
  const Likeness likeness(graph, plan);
  std::map<std::vector<std::size_t>, std::vector<std::size_t>> kinds;  // vertices that are alike
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (!is_input(graph.vertices[v])) kinds[likeness.of(v)].push_back(v);
  }
  // Fewer sites always receive less.
  const bool may_idle = kind == CostKind::seconds || !uses_all_sites(graph, at_once, machine);
  constexpr std::int64_t fewest = 16;
  const std::int64_t each = std::max(changes_to_try(plan.sites) / std::max<std::int64_t>(std::ssize(kinds), 1), fewest);
  for (const auto& [likeness_of_kind, vertices] : kinds) {
    const std::size_t v = vertices.front();
    const auto is_other = [&](const ChangingCosts::Change& change) {
      if (is_cut_alike(change.plans.front().second, at_once.vertices[v])) return false;
      if (may_idle) return true;
      Plan other = at_once;
      other.vertices[v] = change.plans.front().second;
      return uses_all_sites(graph, other, machine);
    };
    constexpr double any = std::numeric_limits<double>::infinity();
    std::int64_t tried = 0;
    const auto best = least_change(v, candidates, costs, any, tried, each, is_other);
    if (!best) continue;
    for (const std::size_t other : vertices)
      result[other] = alike(likeness, other, v, runner_up(graph, likeness, v, costs.now(), *best));
  }
  return result;
}

}  // namespace einrel
