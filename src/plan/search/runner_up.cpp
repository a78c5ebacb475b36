#include "plan/search/runner_up.h"

#include <limits>

#include "einsum/vertex_facts.h"
#include "plan/planners/eindecomp.h"
#include "plan/refine/whole_pieces.h"
#include "plan/search/search.h"

namespace einrel {
namespace {

RunnerUp compared(const SearchSpace& space, const SearchSpace::Choice& choice, std::size_t v, std::size_t other,
                  double more) {
  const std::vector<SearchSpace::Term> now = space.terms_beside(choice, v, choice[v]);
  const std::vector<SearchSpace::Term> then = space.terms_beside(choice, v, other);
  RunnerUp result{space.candidates(v)[other], more, v, v, 0};
  for (std::size_t t = 0; t < now.size(); ++t) {
    const double more_here = then[t].cost - now[t].cost;
    if (more_here <= result.more_there) continue;
    result.more_there = more_here;
    result.producer = now[t].producer;
    result.consumer = now[t].consumer;
  }
  return result;
}

}  // namespace

std::vector<std::optional<RunnerUp>> runners_up(const EinGraph& graph, const Plan& plan, const Machine& machine,
                                                CostKind kind) {
  std::vector<std::optional<RunnerUp>> result(graph.vertices.size());
  const auto model = cost_model(kind, machine);
  const SearchSpace space(graph, *model, site_candidates(graph, plan.sites, machine, kind));
  const std::optional<SearchSpace::Choice> choice = space.choice_of(with_pieces_together(graph, plan));
  if (!choice) return result;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (is_input(graph.vertices[v]) || space.candidates(v).size() < 2) continue;
    const std::vector<double> costs = space.costs_beside(*choice, v);
    std::size_t second = (*choice)[v] == 0 ? 1 : 0;
    for (std::size_t c = 0; c < costs.size(); ++c) {
      if (c != (*choice)[v] && costs[c] < costs[second]) second = c;
    }
    result[v] = compared(space, *choice, v, second, costs[second] - costs[(*choice)[v]]);
  }
  return result;
}

}  // namespace einrel
