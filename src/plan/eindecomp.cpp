#include "plan/eindecomp.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.h"
#include "plan/numbering.h"
#include "plan/search.h"

namespace einrel {
namespace {

std::vector<VertexPlan> one_part_per_site_each(const std::vector<PartitionVector>& grids) {
  std::vector<VertexPlan> plans;
  plans.reserve(grids.size());
  for (const PartitionVector& grid : grids) plans.push_back(one_part_per_site(grid));
  return plans;
}

VertexPlan whole(const Vertex& vertex) { return one_part_per_site(PartitionVector(label_extents(vertex).size(), 1)); }

/// How many sites a vertex may use: all of them; where time counts, fewer, too.
std::vector<std::int64_t> numbers_of_sites(std::int64_t sites, CostKind kind) {
  std::vector<std::int64_t> numbers{sites};
  if (kind != CostKind::seconds) return numbers;
  constexpr std::int64_t all_below = 16;
  for (std::int64_t fewer = sites - 1; fewer >= 1; --fewer) {
    const bool is_power_of_four = (fewer & (fewer - 1)) == 0 && fewer % 3 == 1;
    if (sites <= all_below || is_power_of_four) numbers.push_back(fewer);
  }
  return numbers;
}

/// Whole first; spread over any divisor of the sites.
std::vector<VertexPlan> input_layouts(const Vertex& vertex, std::int64_t sites) {
  std::vector<VertexPlan> plans{whole(vertex)};
  PartitionVector most;
  for (const Extent extent : vertex.bound) most.push_back(std::max<std::int64_t>(extent.value(), 1));
  for (std::int64_t number = 2; number <= sites; ++number) {
    if (sites % number != 0) continue;
    for (const PartitionVector& grid : factorizations(most, number)) plans.push_back(one_part_per_site(grid));
  }
  return plans;
}

/// Of the beam: a few seconds for thousands of vertices, milliseconds for tens.
std::size_t steps_per_vertex(const EinGraph& graph) {
  constexpr std::size_t all = 1'500'000;
  constexpr std::size_t most = 5000;
  return std::min(most, all / std::max<std::size_t>(graph.vertices.size(), 1));
}

Plan plan_of(const EinGraph& graph, const SearchSpace& space, const SearchSpace::Choice& choice, std::int64_t sites) {
  Plan plan{"", sites, {}};
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) plan.vertices.push_back(space.candidates(v)[choice[v]]);
  number_sites(graph, plan);
  return plan;
}

}  // namespace

Candidates site_candidates(const EinGraph& graph, std::int64_t sites, CostKind kind) {
  return [&graph, sites, kind](const Vertex& vertex) -> std::vector<VertexPlan> {
    if (std::holds_alternative<Input>(vertex.op)) return input_layouts(vertex, sites);
    std::set<PartitionVector> grids;
    for (const std::int64_t number : numbers_of_sites(sites, kind)) {
      for (PartitionVector& grid : site_grids(most_parts(vertex, graph), number)) grids.insert(std::move(grid));
    }
    return one_part_per_site_each({grids.begin(), grids.end()});
  };
}

bool uses_all_sites(const EinGraph& graph, const Plan& plan) {
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (std::holds_alternative<Input>(vertex.op)) continue;
    const PartitionVector most = most_parts(vertex, graph);
    if (sites_used(plan.vertices[v]) < most_sites_of(most, plan.sites)) return false;
  }
  return true;
}

Plan eindecomp_paper(const EinGraph& graph, std::int64_t calls) {
  if (calls < 1) throw Bug("a plan of no kernel calls");
  const auto model = cost_model(CostKind::bound, {});
  const SearchSpace space(graph, *model, [&](const Vertex& vertex) -> std::vector<VertexPlan> {
    if (std::holds_alternative<Input>(vertex.op)) return {whole(vertex)};
    return one_part_per_site_each(power_of_two_partitions(most_parts(vertex, graph), calls));
  });
  Plan plan = plan_of(graph, space, space.by_paths(false), calls);
  plan.planner = "eindecomp-paper";
  return plan;
}

Plan eindecomp(const EinGraph& graph, std::int64_t sites, const Machine& machine, CostKind kind,
               const std::vector<Plan>& others) {
  const auto model = cost_model(kind, machine);
  const SearchSpace space(graph, *model, site_candidates(graph, sites, kind));
  std::vector<Plan> found;
  SearchSpace::Choice choice = space.by_paths(true);
  space.improve(choice);
  found.push_back(plan_of(graph, space, choice, sites));
  choice = space.by_beam(steps_per_vertex(graph));
  space.improve(choice);
  found.push_back(plan_of(graph, space, choice, sites));
  for (const Plan& other : others) {
    if (kind != CostKind::seconds && !uses_all_sites(graph, other)) continue;
    found.push_back(other);
    if (auto start = space.choice_of(other)) {
      space.improve(*start);
      found.push_back(plan_of(graph, space, *start, sites));
    }
  }
  double least = std::numeric_limits<double>::infinity();
  Plan best;
  for (Plan& plan : found) {
    const double cost = costs_of(graph, plan, machine).of(kind);
    if (cost >= least) continue;
    least = cost;
    best = std::move(plan);
  }
  best.planner = "eindecomp";
  return best;
}

}  // namespace einrel
