#include "plan/planners/kcut.h"

#include <utility>

#include "einsum/vertex_facts.h"

namespace einrel {

namespace {

/// Per vertex the labels that are the batch, or those that are not.
AllowedForms forms_of(const EinGraph& graph, const std::string& batch, bool is_batch) {
  AllowedForms allowed;
  for (const Vertex& vertex : graph.vertices) {
    std::vector<std::size_t>& labels = allowed.emplace_back();
    if (is_input(vertex)) continue;
    const std::vector<std::string> names = label_names(vertex);
    for (std::size_t l = 0; l < names.size(); ++l) {
      if ((names[l] == batch) == is_batch) labels.push_back(l);
    }
  }
  return allowed;
}

}  // namespace

TilingCuts kcut_tilings(const EinGraph& graph, const PlanRequest& request) {
  TilingCuts best = tiling_cuts(graph, prime_factors(request.sites));
  const std::optional<std::string> batch = batch_label(graph, request);
  if (!batch) return best;
  const AllowedForms by_batch = forms_of(graph, *batch, true);
  const AllowedForms by_others = forms_of(graph, *batch, false);
  for (const std::int64_t of_batch : divisors_of(request.sites)) {
    std::vector<std::int64_t> groups = prime_factors(of_batch);
    std::vector<AllowedForms> allowed(groups.size(), by_batch);
    for (const std::int64_t prime : prime_factors(request.sites / of_batch)) {
      groups.push_back(prime);
      allowed.push_back(by_others);
    }
    TilingCuts other = tiling_cuts(graph, groups, allowed);
    if (other.moved() < best.moved()) best = std::move(other);
  }
  return best;
}

Planned plan_kcut(const EinGraph& graph, const PlanRequest& request) {
  return plan_by_grids(graph, request, grids_of(graph, kcut_tilings(graph, request)));
}

SchemeGrids model_grids(const EinGraph& graph, const PlanRequest& request) {
  const std::optional<std::string> batch = batch_label(graph, request);
  if (!batch) return "no vertex reads the first label of the first input";
  const AllowedForms allowed = forms_of(graph, *batch, false);
  return grids_of(graph, tiling_cuts(graph, prime_factors(request.sites), {&allowed, 1}));
}

}  // namespace einrel
