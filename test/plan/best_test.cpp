#include "plan/planners/best.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "plan/planners/eindecomp.h"
#include "plan/planners/planner.h"
#include "plan/refine/changing_costs.h"
#include "plan/refine/numbering.h"
#include "plan/refine/ordered_candidates.h"
#include "plan/search/cost_network.h"
#include "plan/search/elimination.h"
#include "support/program.h"
#include "support/random_plan.h"
#include "support/rounds.h"

namespace einrel::test {
namespace {

/// A network of costs as tables: values of one class cost the same together with others.
struct RandomNetwork {
  std::vector<std::size_t> domains;
  std::vector<std::vector<double>> alone;
  std::vector<CostNetwork::Factor> factors;
  std::vector<CostTable> tables;
};

void connect(Random& random, RandomNetwork& network, std::vector<std::size_t> variables) {
  std::sort(variables.begin(), variables.end());
  CostNetwork::Factor factor{variables, {}, {}, nullptr};
  std::size_t size = 1;
  for (const std::size_t v : variables) {
    factor.counts.push_back(static_cast<std::size_t>(random.between(1, 4)));
    size *= factor.counts.back();
    factor.classes.emplace_back();
    for (std::size_t value = 0; value < network.domains[v]; ++value)
      factor.classes.back().push_back(static_cast<std::size_t>(random.between(0, 12)) % factor.counts.back());
  }
  std::vector<double> costs;
  for (std::size_t i = 0; i < size; ++i) costs.push_back(static_cast<double>(random.between(0, 30)));
  CostTable table{variables, {}};
  std::vector<std::size_t> values(variables.size(), 0);
  while (true) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < values.size(); ++i) at = at * factor.counts[i] + factor.classes[i][values[i]];
    table.costs.push_back(costs[at]);
    std::size_t i = values.size();
    while (i > 0 && ++values[i - 1] == network.domains[variables[i - 1]]) values[--i] = 0;
    if (i == 0) break;
  }
  factor.costs = std::make_shared<const std::vector<double>>(std::move(costs));
  network.factors.push_back(std::move(factor));
  network.tables.push_back(std::move(table));
}

RandomNetwork random_network(Random& random, bool is_tree) {
  RandomNetwork network;
  const auto some = [&](std::size_t least, std::size_t most) {
    return static_cast<std::size_t>(random.between(static_cast<std::int64_t>(least), static_cast<std::int64_t>(most)));
  };
  const std::size_t variables = some(2, 6);
  for (std::size_t v = 0; v < variables; ++v) {
    network.domains.push_back(some(1, 5));
    std::vector<double> costs;
    for (std::size_t value = 0; value < network.domains[v]; ++value)
      costs.push_back(static_cast<double>(random.between(0, 20)));
    network.tables.push_back({{v}, costs});
    network.alone.push_back(std::move(costs));
  }
  for (std::size_t v = 1; v < variables; ++v) connect(random, network, {some(0, v - 1), v});
  for (std::int64_t more = is_tree ? 0 : random.between(0, 4); more > 0; --more) {
    std::vector<std::size_t> scope(variables);
    for (std::size_t v = 0; v < variables; ++v) scope[v] = v;
    random.shuffle(scope);
    scope.resize(std::min<std::size_t>(variables, some(2, 3)));
    connect(random, network, std::move(scope));
  }
  return network;
}

/// The costs of all assignments, in order, by walking through them.
std::vector<double> all_costs(const RandomNetwork& network) {
  std::vector<double> costs;
  std::vector<std::size_t> values(network.domains.size(), 0);
  while (true) {
    double cost = 0;
    for (const CostTable& table : network.tables) {
      std::size_t at = 0;
      for (const std::size_t v : table.variables) at = at * network.domains[v] + values[v];
      cost += table.costs[at];
    }
    costs.push_back(cost);
    std::size_t v = values.size();
    while (v > 0 && ++values[v - 1] == network.domains[v - 1]) values[--v] = 0;
    if (v == 0) return costs;
  }
}

TEST(CostNetwork, BoundsTheLeastCostFromBelowAndReachesItOnTrees) {
  for (int seed = 0; seed < rounds(400); ++seed) {
    SCOPED_TRACE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    const bool is_tree = seed % 2 == 0;
    const RandomNetwork made = random_network(random, is_tree);
    CostNetwork network(made.alone, made.factors);
    const std::vector<double> costs = all_costs(made);
    const double least = *std::min_element(costs.begin(), costs.end());
    double before = network.at_least();
    EXPECT_LE(before, least + 1e-9);
    for (int pass = 0; pass < 20; ++pass) {
      network.pass();
      EXPECT_GE(network.at_least(), before - 1e-9);
      before = network.at_least();
    }
    EXPECT_LE(before, least + 1e-9);
    if (is_tree) {
      EXPECT_NEAR(before, least, 1e-9);
    }
  }
}

TEST(CostNetwork, LeavesOutNoValueOfACheapAssignment) {
  for (int seed = 0; seed < rounds(400); ++seed) {
    SCOPED_TRACE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    const RandomNetwork made = random_network(random, false);
    CostNetwork network(made.alone, made.factors);
    const std::vector<double> costs = all_costs(made);
    const double enough =
        *std::min_element(costs.begin(), costs.end()) + static_cast<double>(random.between(0, 3)) + 0.5;
    for (int pass = 0; pass < 5; ++pass) {
      network.pass();
      network.leave_out(enough);
    }
    std::vector<std::size_t> values(made.domains.size(), 0);
    for (const double cost : costs) {
      for (std::size_t v = 0; v < values.size() && cost < enough - 1e-9; ++v) {
        const std::vector<std::size_t>& left = network.left(v);
        EXPECT_NE(std::find(left.begin(), left.end(), values[v]), left.end());
      }
      std::size_t v = values.size();
      while (v > 0 && ++values[v - 1] == made.domains[v - 1]) values[--v] = 0;
    }
  }
}

/// A few statements of which each reads one or two tensors before it.
std::string small_program(Random& random) {
  const std::vector<std::string> labels{"a", "b"};
  std::string text = "dims";
  for (const std::string& label : labels)
    text += fmt::format(" {}={}", label, random.one_of(std::array<std::int64_t, 4>{1, 60, 1000, 4096}));
  text += "\ninput X0[a,b], X1[b,a], X2[a]\n";
  std::vector<std::string> known{"X0[a,b]", "X1[b,a]", "X2[a]"};
  const std::int64_t statements = random.between(1, 3);
  for (std::int64_t s = 0; s < statements; ++s) {
    const auto any = [&] { return known[static_cast<std::size_t>(random.between(0, std::ssize(known) - 1))]; };
    const std::string x = any();
    const std::string y = any();
    const bool has_b = x.find('b') != std::string::npos || y.find('b') != std::string::npos;
    const bool is_reduced = has_b && random.chance(0.4);
    const std::string name = fmt::format("Z{}[{}]", s, is_reduced || !has_b ? "a" : random.chance(0.5) ? "a,b" : "b,a");
    text += fmt::format("{} = {}({} {} {})\n", name, is_reduced ? "sum[b] " : "", x, random.chance(0.5) ? "*" : "+", y);
    known.push_back(name);
  }
  return text;
}

/// The least seconds of all plans of a program's candidates, each counted as a whole, inputs laid out in every way that
/// planners know.
double least_seconds(const EinGraph& graph, std::int64_t sites, const Machine& machine) {
  Plan plan = whole_plan(graph);
  plan.sites = sites;
  Transfers transfers(sites, machine);
  ChangingCosts costs(graph, plan, machine, CostKind::seconds, transfers);
  OrderedCandidates candidates(graph, all_candidates(graph, sites, CostKind::seconds));
  std::vector<std::size_t> vertices;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (!is_input(graph.vertices[v])) vertices.push_back(v);
  }
  double least = std::numeric_limits<double>::infinity();
  std::vector<std::size_t> at(vertices.size(), 0);
  while (true) {
    for (std::size_t i = 0; i < at.size(); ++i)
      plan.vertices[vertices[i]] = candidates.of(vertices[i], costs)[at[i]].plan;
    lay_out_inputs(graph, plan);
    least = std::min(least, costs_of(graph, plan, machine).seconds);
    std::size_t i = at.size();
    while (i > 0 && ++at[i - 1] == candidates.of(vertices[i - 1], costs).size()) at[--i] = 0;
    if (i == 0) return least;
  }
}

Machine some_machine(Random& random, std::int64_t sites) {
  Machine machine;
  machine.sites = sites;
  machine.processor.flops_per_core = random.one_of(std::array{5e8, 1e11});
  machine.network_bandwidth = random.one_of(std::array{1e9, 3e11});
  machine.network_latency = random.one_of(std::array{1e-6, 5e-5});
  machine.task_seconds = 1e-6;
  if (random.chance(0.4) && sites == 4) machine.links.push_back({"between", 2, machine.network_bandwidth / 20, 1e-5});
  if (machine.links.empty() && random.chance(0.3)) {
    machine.sites_per_node = 2;
    machine.network_alone = 1.5;
  }
  return machine;
}

TEST(Best, BoundsAllPlansOfSmallProgramsWhateverItMayLookAt) {
  for (int seed = 0; seed < rounds(300); ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const std::string text = small_program(random);
    const std::int64_t sites = random.one_of(std::array<std::int64_t, 3>{2, 3, 4});
    const Machine machine = some_machine(random, sites);
    SCOPED_TRACE(fmt::format("seed {}, {} sites\n{}", seed, sites, text));
    const EinGraph graph = einrel::graph_of(text);
    const PlanRequest request{.sites = sites, .machine = machine, .batch = std::nullopt};
    const Plan start = std::get<Plan>(planner_named("single").plan(graph, request));
    const double least = least_seconds(graph, sites, machine);
    for (const double numbers : {0., 50., 1000.}) {
      const Plan plan = best_plan(graph, request, start, {.numbers = numbers});
      ASSERT_TRUE(plan.at_least);
      EXPECT_LE(*plan.at_least, (1 + 1e-6) * least) << numbers;
      EXPECT_LE(*plan.at_least, costs_of(graph, plan, machine).seconds) << numbers;
    }
  }
}

TEST(Best, KnowsPlansOfAsManySitesAsALabelHasPositions) {
  const EinGraph graph = einrel::graph_of(
      "dims b=7 f=3001\ninput X[b,f], K[f]\nY[b,f] = exp(X[b,f]) * K[f]\nZ[b] = sum[f] Y[b,f] * Y[b,f]\n");
  Machine machine;
  machine.processor.flops_per_core = 1e8;
  const PlanRequest request{.sites = 8, .machine = machine, .batch = std::nullopt};
  const Plan plan = std::get<Plan>(planner_named("best").plan(graph, request));
  Plan by_batch = whole_plan(graph);
  by_batch.sites = 8;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    PartitionVector grid(label_extents(vertex).size(), 1);
    for (std::size_t l = 0; l < grid.size(); ++l) grid[l] = label_extents(vertex)[l] == Extent(7) ? 7 : 1;
    by_batch.vertices[v] = one_part_per_site(grid);
  }
  lay_out_inputs(graph, by_batch);
  EXPECT_LE(*plan.at_least, costs_of(graph, by_batch, machine).seconds);
  EXPECT_LE(costs_of(graph, plan, machine).seconds, costs_of(graph, by_batch, machine).seconds);
}

TEST(ExactCosts, OfATensorAreAtLeastThoseOfEachReader) {
  for (int seed = 0; seed < rounds(300); ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const std::string text = small_program(random);
    const std::int64_t sites = random.one_of(std::array<std::int64_t, 4>{2, 3, 4, 8});
    const Machine machine = some_machine(random, sites);
    const EinGraph graph = einrel::graph_of(text);
    Plan plan = whole_plan(graph);
    plan.sites = sites;
    Transfers transfers(sites, machine);
    ChangingCosts costs(graph, plan, machine, CostKind::seconds, transfers);
    ExactCosts exact(graph, machine, transfers);
    OrderedCandidates candidates(graph, all_candidates(graph, sites, CostKind::seconds));
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      if (is_input(graph.vertices[v])) continue;
      const std::vector<OrderedCandidate>& ways = candidates.of(v, costs);
      plan.vertices[v] = ways[static_cast<std::size_t>(random.between(0, std::ssize(ways) - 1))].plan;
      costs.put(v, plan.vertices[v]);
    }
    for (std::size_t tensor = 0; tensor < graph.vertices.size(); ++tensor) {
      if (is_input(graph.vertices[tensor])) continue;
      const Layout have = result_layout(graph.vertices[tensor], plan.vertices[tensor]);
      for (const std::size_t reader : costs.readers(tensor)) {
        for (const std::size_t operand : operands_read(graph.vertices[reader])) {
          if (graph.vertices[reader].inputs[operand].index != tensor) continue;
          const Layout need =
              needed_layout(graph.vertices[reader], operand, graph.vertices[tensor].bound, plan.vertices[reader]);
          EXPECT_LE(exact.seconds_at_least(graph.vertices[tensor], have, need), (1 + 1e-12) * costs.moving(tensor))
              << "seed " << seed << "\n"
              << text;
        }
      }
    }
  }
}

/// Programs of random seeds, of which some inputs lie somewhere already, or none.
void expect_best_of_all(int programs, bool are_placed) {
  int proven = 0;
  for (int seed = 0; seed < programs; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const std::string text = small_program(random);
    const std::int64_t sites = random.one_of(std::array<std::int64_t, 3>{2, 3, 4});
    const Machine machine = some_machine(random, sites);
    SCOPED_TRACE(fmt::format("seed {}, {} sites, {} links\n{}", seed, sites, machine.links.size(), text));
    EinGraph graph = einrel::graph_of(text);
    if (are_placed) graph = with_placed_inputs(graph, random_placements(random, graph, sites), sites);
    const PlanRequest request{.sites = sites, .machine = machine, .batch = std::nullopt};
    const Plan plan = std::get<Plan>(planner_named("best").plan(graph, request));
    const double seconds = costs_of(graph, plan, machine).seconds;
    const double least = least_seconds(graph, sites, machine);
    EXPECT_LE(seconds, (1 + 1e-6) * least);
    ASSERT_TRUE(plan.at_least);
    EXPECT_LE(*plan.at_least, (1 + 1e-6) * std::min(least, seconds));
    proven += seconds <= (1 + 1e-6) * *plan.at_least ? 1 : 0;
  }
  EXPECT_EQ(proven, programs);
}

TEST(Best, IsTheBestOfAllPlansOfSmallPrograms) { expect_best_of_all(rounds(1000), false); }

TEST(Best, IsTheBestOfAllPlansThatTakeInputsFromWhereTheyLie) { expect_best_of_all(rounds(400), true); }

}  // namespace
}  // namespace einrel::test
