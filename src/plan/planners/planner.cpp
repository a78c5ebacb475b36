#include "plan/planners/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/cost/least_memory.h"
#include "plan/placed_inputs.h"
#include "plan/planners/baselines.h"
#include "plan/planners/best.h"
#include "plan/planners/default_planner.h"
#include "plan/planners/eindecomp.h"
#include "plan/planners/kcut.h"
#include "plan/planners/schemes.h"
#include "plan/planners/spmd_search.h"
#include "plan/planners/within_memory.h"
#include "plan/search/sampled_cuts.h"
#include "plan/spmd.h"

namespace einrel {
namespace {

constexpr const char* best_planner = "best";

/// Those of which the plans are to be looked at: of large graphs, of which one plan takes long, only the first.
std::vector<std::vector<SchemeFactor>> products_to_try(const EinGraph& graph, std::int64_t sites) {
  constexpr std::size_t most_vertices = 20'000;  // of all plans together
  std::vector<std::vector<SchemeFactor>> products = products_of_two(sites);
  const auto is_of_groups = [](const std::vector<SchemeFactor>& product) {
    const std::string_view groups = product.front().scheme->name;
    return (groups == "data" || groups == "fsdp") && product.back().scheme->name == "tensor";
  };
  const auto others = std::stable_partition(products.begin(), products.end(), is_of_groups);
  if (products.size() * graph.vertices.size() > most_vertices) products.erase(others, products.end());
  return products;
}

/// The plans of all other planners, and of products of them. On one site all plans are the same.
std::vector<Plan> plans_of_others(const EinGraph& graph, const PlanRequest& request) {
  if (request.sites == 1) return request.beside;
  std::vector<Plan> others;  // of equals, the first is taken
  for (const Planner& planner : all_planners()) {
    if (graph.vertices.size() > planner.tried_up_to) continue;
    Planned planned = planner.plan(graph, request);
    if (auto* const plan = std::get_if<Plan>(&planned)) others.push_back(std::move(*plan));
  }
  std::vector<Plan> products = plans_by_products(graph, request, products_to_try(graph, request.sites));
  std::move(products.begin(), products.end(), std::back_inserter(others));
  others.insert(others.end(), request.beside.begin(), request.beside.end());
  for (Plan& other : others) other.cuts.reset();  // what becomes of it is no plan of these cuts
  return others;
}

Planned plan_eindecomp(const EinGraph& graph, const PlanRequest& request) {
  if (request.memory) {
    std::string reason = always_over_limit(graph, request.sites, *request.memory);
    if (!reason.empty()) return reason;
  }
  const std::vector<Plan> others = plans_of_others(graph, request);
  if (request.spmd) return spmd_plan(graph, request, others);
  OtherPlans others_of_fewer;
  if (!request.is_for_parts) {
    others_of_fewer = [&](std::int64_t sites) {
      PlanRequest fewer = request;
      fewer.sites = sites;
      fewer.beside.clear();
      return plans_of_others(graph, fewer);
    };
  }
  AllowedPlans fits;
  if (request.memory) fits = [&](const Plan& plan) { return peak_of(graph, plan).bytes <= *request.memory; };
  Plan plan = eindecomp(graph, request.sites, request.machine, request.cost, others, others_of_fewer, fits);
  return request.memory ? within_memory(graph, request, others, std::move(plan)) : plan;
}

/// From what eindecomp finds.
Planned plan_best(const EinGraph& graph, const PlanRequest& request) {
  if (request.cost != CostKind::seconds) return "it makes seconds least; eindecomp can make others least, too";
  if (request.spmd) return "it bounds no plans of a single program for all sites; eindecomp makes them";
  Planned start = plan_eindecomp(graph, request);
  if (const auto* const plan = std::get_if<Plan>(&start)) {
    start = best_plan(graph, request, *plan);
  }
  return start;
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

/// Why no single program for all sites has its inputs lie as is given; "" where one may.
std::string fault_of_placed_inputs(const EinGraph& graph, std::int64_t sites) {
  for (const Vertex& vertex : graph.vertices) {
    const std::optional<VertexPlan> given = given_plan(vertex);
    const std::string fault = given ? spmd_fault(vertex, *given, mesh_of(sites)) : "";
    if (!fault.empty())
      return fmt::format("no single program for all sites takes {} from where it lies: {}", vertex.name, fault);
  }
  return "";
}

/// The same planner, which has no plan where a single program for all sites is asked for and its plan is none.
Planner checked(Planner planner) {
  planner.plan = [plan = std::move(planner.plan)](const EinGraph& graph, const PlanRequest& request) -> Planned {
    if (request.spmd) {
      if (std::string fault = fault_of_placed_inputs(graph, request.sites); !fault.empty()) return fault;
    }
    Planned planned = plan(graph, request);
    auto* const found = std::get_if<Plan>(&planned);
    if (found != nullptr) {
      if (const std::string fault = placement_fault(graph, *found); !fault.empty()) throw Bug("a plan: " + fault);
    }
    if (found == nullptr || !request.spmd) return planned;
    if (const std::string fault = spmd_fault(graph, *found); !fault.empty())
      return fault + "; eindecomp searches for plans that one can say";
    found->is_spmd = true;
    return planned;
  };
  return planner;
}

std::vector<Planner> planners_and_schemes() {
  std::vector<Planner> planners{
      {default_planner, "the cheapest plan found, for any number of sites, by any cost", plan_eindecomp, 0},
      {best_planner, "the plan of eindecomp, or a faster one, and how far from the fastest of all it can be", plan_best,
       0},
      {"eindecomp-paper", "EinDecomp as published: powers of two, least floats moved in the worst case",
       plan_eindecomp_paper},
      {"single", "everything on one site", plan_single},
      {"sqrt", "every result into about as many parts along its two longest labels", plan_sqrt},
      {"all-tile", "chunks of at most 1000 along every label", plan_all_tile}};
  for (const Scheme& scheme : all_schemes()) {
    planners.push_back({std::string(scheme.name), std::string(scheme.summary),
                        [&scheme](const EinGraph& graph, const PlanRequest& request) {
                          return plan_by_schemes(graph, request, {{&scheme, request.sites}});
                        },
                        scheme.tried_up_to});
  }
  planners.push_back({"kcut", "SoyBean: halved again and again, each time with least elements moved between the halves",
                      plan_kcut, most_cut_at_once});
  for (Planner& planner : planners) planner = checked(std::move(planner));
  return planners;
}

}  // namespace

bool starts_from_others(std::string_view name) { return name == default_planner || name == best_planner; }

const std::vector<Planner>& all_planners() {
  static const std::vector<Planner> planners = planners_and_schemes();
  return planners;
}

Planner planner_named(std::string_view name) {
  if (is_product_of_schemes(name)) {
    return checked({std::string(name), "several schemes at a time",
                    [factors = scheme_factors(name)](const EinGraph& graph, const PlanRequest& request) {
                      return plan_by_schemes(graph, request, factors);
                    }});
  }
  std::vector<std::string> names;
  for (const Planner& planner : all_planners()) {
    if (planner.name == name) return planner;
    names.push_back(planner.name);
  }
  const std::string hint = did_you_mean(name, names);
  throw UserError(fmt::format("there is no planner '{}'; {} {}, and products such as 'data:8 x tensor:4' or hybrid:8x4",
                              printable(name), hint.empty() ? "there are" : hint + " There are",
                              fmt::join(names, ", ")));
}

}  // namespace einrel
