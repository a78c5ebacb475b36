#include "plan/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/vertex_facts.h"
#include "plan/planners/baselines.h"
#include "plan/planners/eindecomp.h"
#include "plan/planners/schemes.h"
#include "plan/refine/within_memory.h"
#include "plan/search/sampled_cuts.h"

namespace einrel {
namespace {

/// The plans of all other planners, and of products of them. Of large graphs, of which one plan takes long, only of
/// `data x tensor`; of those without training, in which nothing is fully sharded, none of `fsdp`.
std::vector<Plan> plans_of_others(const EinGraph& graph, const PlanRequest& request) {
  std::vector<Plan> others;  // in the order of the planners: of equals, the first is taken
  const auto look_at = [&](const Planner& planner) -> std::optional<std::size_t> {
    Planned planned = planner.plan(graph, request);
    auto* const plan = std::get_if<Plan>(&planned);
    if (plan == nullptr) return std::nullopt;
    others.push_back(std::move(*plan));
    return others.size() - 1;
  };
  std::optional<std::size_t> data;
  std::optional<std::size_t> fsdp;
  for (const Planner& planner : all_planners()) {
    if (!planner.tried_by_eindecomp) continue;
    const std::optional<std::size_t> place = look_at(planner);
    if (planner.name == "data") data = place;
    if (planner.name == "fsdp") fsdp = place;
  }
  constexpr std::size_t few_vertices = 200;
  const bool is_small = graph.vertices.size() <= few_vertices;
  const bool is_trained = !data || !fsdp || others[*fsdp].vertices != others[*data].vertices;
  for (const std::string& product : usual_products(request.sites)) {
    const bool is_taken = is_small || product.find(" x tensor") != std::string::npos;
    if (is_taken && (is_trained || !product.starts_with("fsdp"))) look_at(planner_named(product));
  }
  return others;
}

Planned plan_eindecomp(const EinGraph& graph, const PlanRequest& request) {
  const std::vector<Plan> others = plans_of_others(graph, request);
  if (request.memory) return eindecomp_within(graph, request, others);
  return eindecomp(graph, request.sites, request.machine, request.cost, others);
}

Planned plan_eindecomp_paper(const EinGraph& graph, const PlanRequest& request) {
  constexpr double most = 4000;       // of one vertex: it compares every two of neighbours
  constexpr double most_pairs = 4e6;  // of vertices with many labels, which are seldom alike
  double pairs = 0;
  for (const Vertex& vertex : graph.vertices) {
    if (is_input(vertex)) continue;
    const double ways = count_of_power_of_two_partitions(most_parts(vertex, graph), request.sites);
    if (has_many_labels(vertex)) pairs += ways * ways;
    if (ways > most || pairs > most_pairs)
      return fmt::format("there are {} ways to cut {}; eindecomp looks at some of them", ways, vertex.name);
  }
  return eindecomp_paper(graph, request.sites);
}

std::vector<Planner> planners_and_schemes() {
  std::vector<Planner> planners{
      {"eindecomp", "the cheapest plan found, for any number of sites, by any cost", plan_eindecomp, false},
      {"eindecomp-paper", "EinDecomp as published: powers of two, least floats moved in the worst case",
       plan_eindecomp_paper},
      {"single", "everything on one site", plan_single},
      {"sqrt", "every result into about as many parts along its two longest labels", plan_sqrt},
      {"all-tile", "chunks of at most 1000 along every label", plan_all_tile}};
  for (const Scheme& scheme : all_schemes()) {
    planners.push_back({std::string(scheme.name), std::string(scheme.summary),
                        [&scheme](const EinGraph& graph, const PlanRequest& request) {
                          return plan_by_schemes(graph, request, {{&scheme, request.sites}});
                        }});
  }
  return planners;
}

}  // namespace

const std::vector<Planner>& all_planners() {
  static const std::vector<Planner> planners = planners_and_schemes();
  return planners;
}

Planner planner_named(std::string_view name) {
  if (is_product_of_schemes(name)) {
    return {std::string(name), "several schemes at a time",
            [factors = scheme_factors(name)](const EinGraph& graph, const PlanRequest& request) {
              return plan_by_schemes(graph, request, factors);
            }};
  }
  std::vector<std::string> names;
  for (const Planner& planner : all_planners()) {
    if (planner.name == name) return planner;
    names.push_back(planner.name);
  }
  const std::string hint = did_you_mean(name, names);
  throw UserError(fmt::format("there is no planner '{}'; {} {}, and products such as 'data:8 x tensor:4'",
                              printable(name), hint.empty() ? "there are" : hint + " There are",
                              fmt::join(names, ", ")));
}

}  // namespace einrel
