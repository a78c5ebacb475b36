#include "plan/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "plan/baselines.h"
#include "plan/eindecomp.h"
#include "plan/schemes.h"
#include "plan/within_memory.h"

namespace einrel {
namespace {

/// The plans of all other planners, and of products of them. Of large graphs, of which one plan takes long, only of
/// `data x tensor`; of those without training, in which nothing is fully sharded, none of `fsdp`.
std::vector<Plan> plans_of_others(const EinGraph& graph, const PlanRequest& request) {
  std::map<std::string, Plan> plans;
  const auto look_at = [&](const Planner& planner) {
    Planned planned = planner.plan(graph, request);
    if (auto* const plan = std::get_if<Plan>(&planned)) plans.emplace(planner.name, std::move(*plan));
  };
  for (const Planner& planner : all_planners()) {
    if (planner.name != "eindecomp") look_at(planner);
  }
  constexpr std::size_t few_vertices = 200;
  const bool is_small = graph.vertices.size() <= few_vertices;
  const auto data = plans.find("data");
  const bool is_trained = data == plans.end() || plans.at("fsdp").vertices != data->second.vertices;
  for (const std::string& product : usual_products(request.sites)) {
    const bool is_taken = is_small || product.find(" x tensor") != std::string::npos;
    if (is_taken && (is_trained || !product.starts_with("fsdp"))) look_at(planner_named(product));
  }
  std::vector<Plan> others;
  for (auto& [name, plan] : plans) others.push_back(std::move(plan));
  return others;
}

Planned plan_eindecomp(const EinGraph& graph, const PlanRequest& request) {
  const std::vector<Plan> others = plans_of_others(graph, request);
  if (request.memory) return eindecomp_within(graph, request, others);
  return eindecomp(graph, request.sites, request.machine, request.cost, others);
}

Planned plan_eindecomp_paper(const EinGraph& graph, const PlanRequest& request) {
  constexpr std::size_t most = 4000;  // of one vertex: it compares every two of neighbours
  for (const Vertex& vertex : graph.vertices) {
    if (is_input(vertex)) continue;
    const std::size_t ways = power_of_two_partitions(most_parts(vertex, graph), request.sites).size();
    if (ways > most)
      return fmt::format("there are {} ways to cut {}; eindecomp looks at some of them", ways, vertex.name);
  }
  return eindecomp_paper(graph, request.sites);
}

std::vector<Planner> planners_and_schemes() {
  std::vector<Planner> planners{
      {"eindecomp", "the cheapest plan found, for any number of sites, by any cost", plan_eindecomp},
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
  throw UserError(fmt::format("there is no planner '{}'{}; there are {}, and products such as 'data:8 x tensor:4'",
                              printable(name), hint.empty() ? "" : ", " + hint, fmt::join(names, ", ")));
}

}  // namespace einrel
