#include "plan/planners/kcut.h"

#include <algorithm>
#include <utility>

#include "einsum/vertex_facts.h"
#include "plan/cost/cost.h"

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

/// Into how many groups each cut divides: those of the slowest links first, each number of groups by its prime factors.
std::vector<std::int64_t> groups_of_cuts(std::int64_t sites, const Machine& machine) {
  std::vector<std::int64_t> groups;
  const auto add = [&](std::int64_t number) {
    for (const std::int64_t prime : prime_factors(number)) groups.push_back(prime);
  };
  for (const Link& link : machine.links) {
    if (link.sites >= sites || sites % link.sites != 0) continue;
    add(sites / link.sites);
    sites = link.sites;
  }
  add(sites);
  return groups;
}

/// Whether every vertex is on as many sites as in the other plan.
bool uses_as_many_sites(const Plan& plan, const Plan& other) {
  return std::equal(plan.vertices.begin(), plan.vertices.end(), other.vertices.begin(),
                    [](const VertexPlan& a, const VertexPlan& b) { return sites_used(a) >= sites_used(b); });
}

}  // namespace

TilingCuts kcut_tilings(const EinGraph& graph, const PlanRequest& request) {
  TilingCuts best = tiling_cuts(graph, groups_of_cuts(request.sites, request.machine));
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
  const TilingCuts cuts = kcut_tilings(graph, request);
  Planned planned = plan_by_grids(graph, request, grids_of(graph, cuts));
  auto* const numbered = std::get_if<Plan>(&planned);
  if (numbered == nullptr) return planned;
  const auto cost = [&](const Plan& plan) { return costs_of(graph, plan, request.machine).of(request.cost); };
  Plan in_order = plan_by_cuts(graph, request.sites, cuts);
  if (uses_as_many_sites(in_order, *numbered) && cost(in_order) < cost(*numbered)) return in_order;
  return planned;
}

SchemeGrids model_grids(const EinGraph& graph, const PlanRequest& request) {
  const std::optional<std::string> batch = batch_label(graph, request);
  if (!batch) return "no vertex reads the first label of the first input: name the batch with --batch";
  const AllowedForms allowed = forms_of(graph, *batch, false);
  return grids_of(graph, tiling_cuts(graph, prime_factors(request.sites), {&allowed, 1}));
}

}  // namespace einrel
