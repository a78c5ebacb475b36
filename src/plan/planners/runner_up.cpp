#include "plan/planners/runner_up.h"

#include "plan/planners/eindecomp.h"
#include "plan/refine/reduce_as_received.h"
#include "plan/search/search.h"

namespace einrel {

std::vector<std::optional<RunnerUp>> runners_up(const EinGraph& graph, const Plan& plan, const Machine& machine,
                                                CostKind kind) {
  std::vector<std::optional<RunnerUp>> result(graph.vertices.size());
  const auto model = cost_model(kind, machine);
  const SearchSpace space(graph, *model, site_candidates(graph, plan.sites, machine, kind));
  const std::optional<SearchSpace::Choice> choice = space.choice_of(reduced_at_once(graph, plan));
  if (!choice) return result;
  const std::vector<std::optional<SearchSpace::Second>> seconds = space.seconds(*choice);
  for (std::size_t v = 0; v < result.size(); ++v) {
    if (!seconds[v]) continue;
    const auto& [candidate, more, producer, consumer, more_there] = *seconds[v];
    result[v] = RunnerUp{space.candidates(v)[candidate], more, producer, consumer, more_there};
  }
  return result;
}

}  // namespace einrel
