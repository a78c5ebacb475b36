#include "plan/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "plan/baselines.h"
#include "plan/eindecomp.h"
#include "plan/transformer.h"
#include "plan/within_memory.h"

namespace einrel {
namespace {

Planned plan_eindecomp(const EinGraph& graph, const PlanRequest& request) {
  std::vector<Plan> others;
  for (const Planner& planner : all_planners()) {
    if (planner.plan == plan_eindecomp) continue;
    Planned planned = planner.plan(graph, request);
    if (auto* const plan = std::get_if<Plan>(&planned)) others.push_back(std::move(*plan));
  }
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

}  // namespace

const std::vector<Planner>& all_planners() {
  static const std::vector<Planner> planners{
      {"eindecomp", "the cheapest plan found, for any number of sites, by any cost", plan_eindecomp},
      {"eindecomp-paper", "EinDecomp as published: powers of two, least floats moved in the worst case",
       plan_eindecomp_paper},
      {"single", "everything on one site", plan_single},
      {"data", "one label, --batch, over all sites", plan_data},
      {"sqrt", "every result into about as many parts along its two longest labels", plan_sqrt},
      {"all-tile", "chunks of at most 1000 along every label", plan_all_tile},
      {"megatron", "attention by its heads, what lies between products with weights by hidden units", plan_megatron},
      {"sequence", "attention and all around it by the positions of the sequence", plan_sequence},
      {"heads", "attention by its heads, all else by positions", plan_heads},
  };
  return planners;
}

const Planner& planner_named(std::string_view name) {
  std::vector<std::string> names;
  for (const Planner& planner : all_planners()) {
    if (planner.name == name) return planner;
    names.emplace_back(planner.name);
  }
  const std::string hint = did_you_mean(name, names);
  throw UserError(fmt::format("there is no planner '{}'{}; there are {}", printable(name),
                              hint.empty() ? "" : ", " + hint, fmt::join(names, ", ")));
}

}  // namespace einrel
