#include "plan/planners/kcut.h"

#include <algorithm>
#include <utility>

#include "einsum/graph/vertex_facts.h"
#include "plan/cost/cost.h"
#include "plan/placed_inputs.h"

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

/// In which order the prime factors of a number of groups are cut: by two first, or last. A label of extent 7 can be
/// halved, and then not be cut into five; but into five.
enum class PrimesFirst { least, largest };

std::vector<std::int64_t> primes_of(std::int64_t number, PrimesFirst first) {
  std::vector<std::int64_t> primes = prime_factors(number);
  if (first == PrimesFirst::largest) std::reverse(primes.begin(), primes.end());
  return primes;
}

/// Those that may make a difference.
std::vector<PrimesFirst> orders_of(std::int64_t sites) {
  const std::vector<std::int64_t> primes = prime_factors(sites);
  if (primes.empty() || primes.front() == primes.back()) return {PrimesFirst::least};
  return {PrimesFirst::least, PrimesFirst::largest};
}

/// Into how many groups each cut divides: those of the outermost links first, each number of groups by its prime
/// factors.
std::vector<std::int64_t> groups_of_cuts(std::int64_t sites, const Machine& machine, PrimesFirst first) {
  std::vector<std::int64_t> groups;
  const auto add = [&](std::int64_t number) {
    for (const std::int64_t prime : primes_of(number, first)) groups.push_back(prime);
  };
  for (const Link& link : machine.links) {
    if (link.sites >= sites || sites % link.sites != 0) continue;
    add(sites / link.sites);
    sites = link.sites;
  }
  add(sites);
  return groups;
}

/// Data parallelism among so many groups of sites, and model parallelism in each.
CutsWanted hybrid_cuts(std::int64_t groups, std::int64_t sites, PrimesFirst first, const AllowedForms& by_batch,
                       const AllowedForms& by_others) {
  CutsWanted wanted{primes_of(groups, first)};
  wanted.allowed.assign(wanted.groups.size(), by_batch);
  for (const std::int64_t prime : primes_of(sites / groups, first)) {
    wanted.groups.push_back(prime);
    wanted.allowed.push_back(by_others);
  }
  return wanted;
}

/// Whether every vertex is on as many sites as in the other plan.
bool uses_as_many_sites(const Plan& plan, const Plan& other) {
  return std::equal(plan.vertices.begin(), plan.vertices.end(), other.vertices.begin(),
                    [](const VertexPlan& a, const VertexPlan& b) { return sites_used(a) >= sites_used(b); });
}

}  // namespace

TilingCuts kcut_tilings(const EinGraph& graph, const PlanRequest& request) {
  const std::vector<PrimesFirst> orders = orders_of(request.sites);
  std::vector<CutsWanted> ways;
  for (const PrimesFirst first : orders) {
    CutsWanted wanted{groups_of_cuts(request.sites, request.machine, first)};
    if (ways.empty() || ways.front().groups != wanted.groups) ways.push_back(std::move(wanted));
  }
  if (const std::optional<std::string> batch = batch_label(graph, request)) {
    const AllowedForms by_batch = forms_of(graph, *batch, true);
    const AllowedForms by_others = forms_of(graph, *batch, false);
    for (const std::int64_t groups : divisors_of(request.sites)) {
      for (const PrimesFirst first : orders)
        ways.push_back(hybrid_cuts(groups, request.sites, first, by_batch, by_others));
    }
  }
  return tiling_cuts(graph, ways);
}

Planned plan_kcut(const EinGraph& graph, const PlanRequest& request) {
  TilingCuts cuts = kcut_tilings(graph, request);
  Planned planned = plan_by_grids(graph, request, grids_of(graph, cuts));
  auto* const numbered = std::get_if<Plan>(&planned);
  if (numbered == nullptr) return planned;
  const auto cost = [&](const Plan& plan) { return costs_of(graph, plan, request.machine).of(request.cost); };
  Plan in_order = plan_by_cuts(graph, request, cuts);
  if (uses_as_many_sites(in_order, *numbered) && cost(in_order) < cost(*numbered)) *numbered = std::move(in_order);
  const bool lie_freely = std::none_of(graph.vertices.begin(), graph.vertices.end(),
                                       [](const Vertex& vertex) { return is_input(vertex) && !lies_freely(vertex); });
  if (lie_freely) numbered->cuts = std::move(cuts);  // else inputs lie otherwise than cut by cut
  return planned;
}

SchemeGrids model_grids(const EinGraph& graph, const PlanRequest& request) {
  const std::optional<std::string> batch = batch_label(graph, request);
  if (!batch) return "no vertex reads the first label of the first input: name the batch (the option 'batch')";
  const AllowedForms allowed = forms_of(graph, *batch, false);
  std::vector<CutsWanted> ways;
  for (const PrimesFirst first : orders_of(request.sites)) ways.push_back({primes_of(request.sites, first), {allowed}});
  return grids_of(graph, tiling_cuts(graph, ways));
}

}  // namespace einrel
