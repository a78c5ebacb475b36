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
#include "plan/refine/reduce_as_received.h"

namespace einrel {
namespace {

/// What is known of a vertex, of another one that is like it.
std::optional<RunnerUp> alike(const EinGraph& graph, const Likeness& likeness, std::size_t v, std::size_t first,
                              std::optional<RunnerUp> known) {
  if (!known) return known;
  const auto counterpart = [&](std::size_t vertex) {
    if (vertex == first) return v;
    const std::vector<VertexId>& inputs = graph.vertices[first].inputs;
    const auto input = std::find(inputs.begin(), inputs.end(), VertexId{vertex});
    if (input != inputs.end()) return graph.vertices[v].inputs[static_cast<std::size_t>(input - inputs.begin())].index;
    const std::vector<std::size_t>& readers = likeness.readers(first);
    const auto reader = std::find(readers.begin(), readers.end(), vertex);
    return reader == readers.end() ? v : likeness.readers(v)[static_cast<std::size_t>(reader - readers.begin())];
  };
  known->producer = counterpart(known->producer);
  known->consumer = counterpart(known->consumer);
  return known;
}

/// Of a change of v, what costs more for it, and where most.
RunnerUp runner_up(const Likeness& likeness, std::size_t v, const ChangingCosts::Costed& now,
                   const ChangingCosts::Change& change) {
  RunnerUp other{change.plans.front().second, change.total - now.total, v, v, change.alone - now.alone[v]};
  for (const auto& [tensor, cost] : change.moves) {
    const double more = cost - now.moves[tensor];
    if (more <= other.more_there) continue;
    other.more_there = more;
    other.producer = tensor;
    const bool has_readers = tensor == v && !likeness.readers(v).empty();
    other.consumer = has_readers ? likeness.readers(v).front() : v;
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
  std::map<std::vector<std::size_t>, std::size_t> known;
  std::int64_t tried = 0;
  // Fewer sites always receive less.
  const bool may_idle = kind == CostKind::seconds || !uses_all_sites(graph, at_once, machine);
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (is_input(graph.vertices[v])) continue;
    if (const auto [first, is_new] = known.try_emplace(likeness.of(v), v); !is_new) {
      result[v] = alike(graph, likeness, v, first->second, result[first->second]);
      continue;
    }
    const auto is_other = [&](const ChangingCosts::Change& change) {
      if (is_cut_alike(change.plans.front().second, at_once.vertices[v])) return false;
      if (may_idle) return true;
      Plan other = at_once;
      other.vertices[v] = change.plans.front().second;
      return uses_all_sites(graph, other, machine);
    };
    constexpr double any = std::numeric_limits<double>::infinity();
    const auto best = least_change(v, candidates, costs, any, tried, is_other);
    if (best) result[v] = runner_up(likeness, v, costs.now(), *best);
  }
  return result;
}

}  // namespace einrel
