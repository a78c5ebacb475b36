#include "plan/planners/kcut.h"

#include "einsum/vertex_facts.h"
#include "plan/search/tilings.h"

namespace einrel {

Planned plan_kcut(const EinGraph& graph, const PlanRequest& request) {
  return plan_by_grids(graph, request, grids_of(graph, tiling_cuts(graph, request.sites)));
}

SchemeGrids model_grids(const EinGraph& graph, const PlanRequest& request) {
  const std::optional<std::string> batch = batch_label(graph, request);
  if (!batch) return "no vertex reads the first label of the first input";
  AllowedForms allowed;
  for (const Vertex& vertex : graph.vertices) {
    std::vector<std::size_t>& labels = allowed.emplace_back();
    if (is_input(vertex)) continue;
    const std::vector<std::string> names = label_names(vertex);
    for (std::size_t l = 0; l < names.size(); ++l) {
      if (names[l] != *batch) labels.push_back(l);
    }
  }
  return grids_of(graph, tiling_cuts(graph, request.sites, {&allowed, 1}));
}

}  // namespace einrel
