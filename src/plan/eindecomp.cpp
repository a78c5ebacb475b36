#include "plan/eindecomp.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <numeric>
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

/// What is left of a number without these prime factors.
std::int64_t without_factors(std::int64_t number, std::initializer_list<std::int64_t> primes) {
  for (const std::int64_t prime : primes) {
    while (number % prime == 0) number /= prime;
  }
  return number;
}

/// How many sites a vertex may use where using fewer than all may be better: instead of numbers that can be cut in few
/// ways (7, 11, 26) ones below that can be cut in many, and for small vertices powers of 4.
std::vector<std::int64_t> numbers_of_sites(std::int64_t sites) {
  std::vector<std::int64_t> numbers{sites};
  if (without_factors(sites, {2, 3, 5}) > 1) {
    std::int64_t smooth = sites - 1;
    numbers.push_back(smooth);
    while (without_factors(smooth, {2, 3}) > 1) --smooth;
    numbers.push_back(smooth);
  }
  for (std::int64_t power = 1; power < sites; power *= 4) numbers.push_back(power);
  return numbers;
}

/// Searches compare every two of neighbouring vertices.
constexpr std::size_t most_candidates = 1000;

/// The factorizations of all these numbers; where they are too many, those that cut the fewest labels.
std::set<PartitionVector> some_factorizations(const PartitionVector& most, const std::vector<std::int64_t>& numbers) {
  std::set<PartitionVector> chosen;
  for (std::size_t cut = 1; cut <= most.size(); ++cut) {
    std::set<PartitionVector> all;
    for (const std::int64_t number : numbers) {
      for (PartitionVector& grid : factorizations(most, number, cut)) all.insert(std::move(grid));
    }
    if (!chosen.empty() && all.size() > most_candidates) break;
    chosen = std::move(all);
  }
  if (chosen.empty()) chosen.insert(PartitionVector(most.size(), 1));
  return chosen;
}

/// Whole first; spread over any divisor of the sites.
std::vector<VertexPlan> input_layouts(const Vertex& vertex, std::int64_t sites) {
  PartitionVector most;
  for (const Extent extent : vertex.bound) most.push_back(std::max<std::int64_t>(extent.value(), 1));
  std::vector<std::int64_t> divisors;
  for (std::int64_t number = 1; number <= sites; ++number) {
    if (sites % number == 0) divisors.push_back(number);
  }
  const std::set<PartitionVector> grids = some_factorizations(most, divisors);  // in order: whole is the first
  return one_part_per_site_each({grids.begin(), grids.end()});
}

/// Of the beam: a few seconds for thousands of vertices, milliseconds for tens.
std::size_t steps_per_vertex(const EinGraph& graph) {
  constexpr std::size_t all = 1'500'000;
  constexpr std::size_t most = 1000;
  return std::min(most, all / std::max<std::size_t>(graph.vertices.size(), 1));
}

/// Infinite where there are more bytes than 63 bits count.
double exact_cost(const EinGraph& graph, const Plan& plan, const Machine& machine, CostKind kind) {
  try {
    return costs_of(graph, plan, machine).of(kind);
  } catch (const UserError&) {
    return std::numeric_limits<double>::infinity();
  }
}

Plan plan_of(const EinGraph& graph, const SearchSpace& space, const SearchSpace::Choice& choice, std::int64_t sites) {
  Plan plan{"", sites, {}};
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) plan.vertices.push_back(space.candidates(v)[choice[v]]);
  number_sites(graph, plan);
  return plan;
}

}  // namespace

std::vector<bool> small_vertices(const EinGraph& graph, std::int64_t sites, const Machine& machine) {
  std::vector<double> seconds;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) seconds.push_back(one_site_seconds(graph, v, machine));
  constexpr double all_together = 0.01;
  const double on_all_sites = std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(sites);
  const double allowed = all_together * on_all_sites / static_cast<double>(seconds.size());
  std::vector<bool> small;
  for (const double alone : seconds) small.push_back(alone <= allowed);
  return small;
}

Candidates site_candidates(const EinGraph& graph, std::int64_t sites, std::vector<bool> may_idle) {
  return [&graph, sites, may_idle = std::move(may_idle)](const Vertex& vertex, std::size_t v) {
    if (std::holds_alternative<Input>(vertex.op)) return input_layouts(vertex, sites);
    const PartitionVector most = most_parts(vertex, graph);
    std::vector<std::int64_t> numbers;
    for (const std::int64_t number : may_idle[v] ? numbers_of_sites(sites) : std::vector<std::int64_t>{sites}) {
      numbers.push_back(most_sites_of(most, number));
    }
    const std::set<PartitionVector> grids = some_factorizations(most, numbers);
    return one_part_per_site_each({grids.begin(), grids.end()});
  };
}

Candidates site_candidates(const EinGraph& graph, std::int64_t sites, const Machine& machine, CostKind kind) {
  return site_candidates(graph, sites,
                         kind == CostKind::seconds ? std::vector<bool>(graph.vertices.size(), true)
                                                   : small_vertices(graph, sites, machine));
}

bool uses_all_sites(const EinGraph& graph, const Plan& plan, const Machine& machine) {
  const std::vector<bool> small = small_vertices(graph, plan.sites, machine);
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (std::holds_alternative<Input>(vertex.op) || small[v]) continue;
    const PartitionVector most = most_parts(vertex, graph);
    if (sites_used(plan.vertices[v]) < most_sites_of(most, plan.sites)) return false;
  }
  return true;
}

Plan eindecomp_paper(const EinGraph& graph, std::int64_t calls) {
  if (calls < 1) throw Bug("a plan of no kernel calls");
  const auto model = cost_model(CostKind::bound, {});
  const SearchSpace space(graph, *model, [&](const Vertex& vertex, std::size_t) -> std::vector<VertexPlan> {
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
  std::vector<Plan> found;
  for (const Plan& other : others) {
    if (kind == CostKind::seconds || uses_all_sites(graph, other, machine)) found.push_back(other);
  }
  const std::size_t given = found.size();
  const std::vector<bool> all_if_seconds(graph.vertices.size(), kind == CostKind::seconds);
  const std::vector<bool> small = small_vertices(graph, sites, machine);
  const auto search = [&](const std::vector<bool>& may_idle) {
    const SearchSpace space(graph, *model, site_candidates(graph, sites, may_idle));
    const auto improve_from = [&](SearchSpace::Choice choice) {
      space.improve(choice);
      found.push_back(plan_of(graph, space, choice, sites));
    };
    improve_from(space.by_beam(steps_per_vertex(graph)));
    constexpr std::size_t few_vertices = 200;
    if (graph.vertices.size() > few_vertices) return;
    improve_from(space.by_paths(true));
    for (std::size_t i = 0; i < given; ++i) {
      if (const auto start = space.choice_of(found[i])) improve_from(*start);
    }
  };
  search(all_if_seconds);
  if (kind != CostKind::seconds) search(small);
  const Plan* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const Plan& plan : found) {
    const double cost = exact_cost(graph, plan, machine, kind);
    if (best != nullptr && cost >= least) continue;
    least = cost;
    best = &plan;
  }
  Plan plan = *best;
  plan.planner = "eindecomp";
  return plan;
}

}  // namespace einrel
