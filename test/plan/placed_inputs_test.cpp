#include "plan/placed_inputs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "einsum/graph/vertex_facts.h"
#include "every_plan.h"
#include "lowering_check.h"
#include "plan/cost/memory.h"
#include "plan/planners/planner.h"
#include "plan/refine/changing_costs.h"
#include "plan/refine/finer_parts.h"
#include "plan/where_brought.h"
#include "support/program.h"
#include "support/random_plan.h"
#include "support/rounds.h"

namespace einrel::test {
namespace {

/// The bytes that a plan counts are those that its lowering moves.
void expect_exact_bytes(const EinGraph& graph, const Plan& plan) {
  const LoweredPlan lowered = lower(graph, plan);
  const PlanCosts costs = costs_of(graph, plan, {});
  const Traffic traffic = bytes_of(lowered.ia.store, lowered.ia.plan);
  EXPECT_EQ(costs.bytes, traffic.total);
  EXPECT_EQ(costs.received, traffic.received);
}

/// Vertices and operands, of inputs that nothing else reads.
std::vector<std::pair<std::size_t, std::size_t>> only_reads_of_inputs(const EinGraph& graph) {
  std::map<std::size_t, std::vector<std::pair<std::size_t, std::size_t>>> reads;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    for (std::size_t o = 0; o < graph.vertices[v].inputs.size(); ++o)
      reads[graph.vertices[v].inputs[o].index].emplace_back(v, o);
  }
  std::vector<std::pair<std::size_t, std::size_t>> only;
  for (const auto& [input, of] : reads) {
    if (is_input(graph.vertices[input]) && of.size() == 1) only.push_back(of.front());
  }
  return only;
}

constexpr const char* placed_product = "dims b=8 f=6 g=4\ninput X[b,f], W[f,g]\nZ[b,g] = sum[f] X[b,f] * W[f,g]\n";

TEST(PlacedInputs, LieAsTheDigitsOfSitesSay) {
  const EinGraph graph = with_placed_inputs(einrel::graph_of(placed_product),
                                            {{"X", {{"b", 4}, {"f", 2}}}, {"W", {{"copies", 2}, {"0", 3}}}}, 8);
  const std::optional<VertexPlan> x = given_plan(graph.vertices[0]);
  const std::optional<VertexPlan> w = given_plan(graph.vertices[1]);
  ASSERT_TRUE(x && w);
  // Site 7 = 3 * 2 + 1 has rows 6 and 7 and columns 3 to 5 of X; sites 2 and 5 have rows 4 and 5 of W, 6 and 7 nothing.
  EXPECT_EQ(*x, (VertexPlan{{4, 2}, {4, 2}, {2, 1}}));
  EXPECT_EQ(w->parts, (PartitionVector{3, 1}));
  EXPECT_EQ(w->strides, (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(w->copies, (std::vector<SiteCopies>{{2, 3}}));
  const Layout of_w = result_layout(graph.vertices[1], *w);
  for (std::int64_t site = 0; site < 8; ++site)
    EXPECT_EQ(elements_at(of_w, graph.vertices[1].bound, site), site < 6 ? 8 : 0) << site;
  EXPECT_FALSE(given_plan(graph.vertices[2]));
  EXPECT_EQ(sites_of_placed_inputs(graph), 8);
  EXPECT_FALSE(lies_freely(graph.vertices[0]));
}

/// Counted by hand: X lies by columns, and data parallelism wants rows. A site has 2 of the 6 columns of its 3 rows of
/// 9 and is sent 4 of them; W, whole on site 0, goes to 2 more.
TEST(PlacedInputs, AreMovedToWhereTheyAreNeeded) {
  const EinGraph graph = einrel::graph_of("dims b=9 f=6\ninput X[b,f], W[f]\nZ[b] = sum[f] X[b,f] * W[f]\n");
  const EinGraph placed = with_placed_inputs(graph, {{"X", {{"f", 3}}}, {"W", {}}}, 3);
  PlanRequest request{.sites = 3, .machine = {}, .batch = "b"};
  const Plan plan = std::get<Plan>(planner_named("data").plan(placed, request));
  const PlanCosts costs = costs_of(placed, plan, {});
  EXPECT_EQ(costs.vertices[2].operand_bytes, (std::vector<std::int64_t>{3 * (3 * 4) * 4, 2 * 6 * 4}));
  EXPECT_EQ(costs_of(graph, std::get<Plan>(planner_named("data").plan(graph, request)), {}).bytes, 2 * 6 * 4);
  // Cut along f, nothing of X moves.
  request.cost = CostKind::bytes;
  EXPECT_EQ(std::get<Plan>(planner_named("eindecomp").plan(placed, request)).vertices[2].grid,
            (std::vector<std::int64_t>{1, 3}));
}

TEST(PlacedInputs, AreWhereTheyAreInPlansOfAllPlanners) {
  int plans = 0;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(48)); ++seed) {
    Random random(seed);
    const std::string text =
        seed % 3 == 0 ? random_dag(random, 5) : plannable_programs()[seed % plannable_programs().size()];
    const std::int64_t sites = random.between(2, 8);
    const EinGraph free = einrel::graph_of(text);
    const EinGraph graph = with_placed_inputs(free, random_placements(random, free, sites), sites);
    const CostKind cost = random.one_of(all_cost_kinds);
    for (const Planner& planner : all_planners()) {
      SCOPED_TRACE(fmt::format("seed {}, {} sites, {}\n{}", seed, sites, planner.name, text));
      for (const bool spmd : {false, true}) {
        const Planned planned =
            planner.plan(graph, {.sites = sites, .machine = {}, .cost = cost, .batch = {}, .spmd = spmd});
        const auto* const plan = std::get_if<Plan>(&planned);
        if (plan == nullptr) continue;
        ++plans;
        for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
          const std::optional<VertexPlan> given = given_plan(graph.vertices[v]);
          EXPECT_TRUE(!given || plan->vertices[v] == *given) << graph.vertices[v].name;
        }
        expect_exact_bytes(graph, *plan);
        if (random.chance(0.2)) expect_computes_reference(graph, *plan);
      }
    }
  }
  EXPECT_GT(plans, 400);
}

/// Random programs within what a site may hold, where planners spread inputs and cut finer.
TEST(PlacedInputs, StayWithinMemoryWhereTheyAre) {
  int fitting = 0;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(40)); ++seed) {
    Random random(seed);
    const EinGraph free = einrel::graph_of(random_dag(random, 4));
    const std::int64_t sites = random.between(2, 6);
    const EinGraph graph = with_placed_inputs(free, random_placements(random, free, sites), sites);
    PlanRequest request{.sites = sites, .machine = {}, .batch = {}};
    const Plan unlimited = std::get<Plan>(planner_named("eindecomp").plan(graph, request));
    request.memory = peak_of(graph, unlimited).bytes * 9 / 10;
    const Planned planned = planner_named("eindecomp").plan(graph, request);
    const auto* const plan = std::get_if<Plan>(&planned);
    if (plan == nullptr) continue;
    ++fitting;
    EXPECT_EQ(placement_fault(graph, *plan), "") << seed;
    Plan finer = *plan;
    make_parts_finer(graph, finer, std::vector<std::int64_t>(graph.vertices.size(), 8), InputParts::of_chunks);
    EXPECT_EQ(placement_fault(graph, finer), "") << seed;
    expect_exact_bytes(graph, finer);
  }
  EXPECT_GT(fitting, 10);
}

TEST(PlacedInputs, CountAlikeWhereSingleVerticesChange) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const EinGraph free = einrel::graph_of(plannable_programs()[seed % plannable_programs().size()]);
    const std::int64_t sites = random.between(2, 8);
    const EinGraph graph = with_placed_inputs(free, random_placements(random, free, sites), sites);
    Plan plan = random_plan(random, graph, sites);
    plan.sites = sites;
    for (const CostKind kind : all_cost_kinds) {
      Transfers transfers(sites);
      const Machine machine;
      ChangingCosts changing(graph, plan, machine, kind, transfers);
      for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
        if (is_input(graph.vertices[v])) continue;
        const VertexPlan whole = one_part_per_site(PartitionVector(plan.vertices[v].parts.size(), 1));
        const auto change = changing.with(v, whole);
        ASSERT_TRUE(change);
        changing.take(*change);
        const double exact = costs_of(graph, changing.now().plan, machine).of(kind);
        EXPECT_NEAR(changing.now().total, exact, 1e-9 * std::max(exact, 1.0))
            << "seed " << seed << ", " << name_of(kind);
        EXPECT_EQ(placement_fault(graph, changing.now().plan), "");
      }
    }
  }
}

/// Data parallelism on 3 sites has rows of X on each, and brings W, whole, to all; a state's place is its step's.
TEST(PlacedInputs, AreWhereAPlanBringsThem) {
  const EinGraph graph = einrel::graph_of(
      "dims b=9 f=6\ninput X[b,f], W[f]\nstate s[b] = 0\nZ[b] = sum[f] X[b,f] * W[f]\nnext s[b] = Z[b] + s[b]\n"
      "output Z\n");
  const Plan plan = std::get<Plan>(planner_named("data").plan(graph, {.sites = 3, .machine = {}, .batch = "b"}));
  EXPECT_EQ(where_brought(graph, plan, {}), (GivenPlacements{{"W", {{"copies", 3}}}})) << "X is read where it lies";
  EXPECT_EQ(where_brought(graph, plan, {"W"}), GivenPlacements{});
}

/// A plan whose inputs lie already where it brings them moves nothing of those that have one reader.
TEST(PlacedInputs, AreNotBroughtToWhereAPlanHasBroughtThem) {
  int brought = 0;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(60)); ++seed) {
    Random random(seed);
    const EinGraph graph = einrel::graph_of(plannable_programs()[seed % plannable_programs().size()]);
    const std::int64_t sites = std::int64_t{2} << random.between(0, 2);
    for (const char* const planner : {"eindecomp", "data", "kcut"}) {
      const Planned planned = planner_named(planner).plan(graph, {.sites = sites, .machine = {}, .batch = {}});
      if (!std::holds_alternative<Plan>(planned)) continue;
      const Plan& plan = std::get<Plan>(planned);
      const GivenPlacements placements = where_brought(graph, plan, {});
      const EinGraph placed = with_placed_inputs(graph, placements, sites);
      Plan there = plan;
      for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
        if (const std::optional<VertexPlan> given = given_plan(placed.vertices[v])) there.vertices[v] = *given;
      }
      const PlanCosts before = costs_of(graph, plan, {});
      const PlanCosts after = costs_of(placed, there, {});
      for (const auto& [reader, operand] : only_reads_of_inputs(graph)) {
        const VertexId input = graph.vertices[reader].inputs[operand];
        if (!placements.contains(graph[input].name)) continue;
        EXPECT_EQ(after.vertices[reader].operand_bytes[operand], 0)
            << seed << ", " << planner << ", " << graph[input].name;
        if (before.vertices[reader].operand_bytes[operand] > 0) ++brought;
      }
    }
  }
  EXPECT_GT(brought, 10);
}

/// A program of which the site that holds a matrix whole computes all that needs it, since moving it takes longer.
TEST(PlacedInputs, DecideWhereTheirReadersAreComputed) {
  const EinGraph graph = einrel::graph_of("dims i=2000 j=2000\ninput X[i,j], v[j]\nZ[i] = sum[j] X[i,j] * v[j]\n");
  const auto grid = [&](const GivenPlacements& placements) {
    const EinGraph placed = with_placed_inputs(graph, placements, 4);
    const PlanRequest request{.sites = 4, .machine = {}, .batch = {}};
    return std::get<Plan>(planner_named("best").plan(placed, request)).vertices.back().grid;
  };
  EXPECT_EQ(grid({{"X", {{"i", 4}}}}), (std::vector<std::int64_t>{4, 1}));
  EXPECT_EQ(grid({{"X", {{"j", 4}}}}), (std::vector<std::int64_t>{1, 4}));
  EXPECT_EQ(grid({{"X", {{"i", 2}, {"j", 2}}}}), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(grid({{"X", {}}}), (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(grid({{"X", {{"-2", 4}}}}), (std::vector<std::int64_t>{4, 1}));
  EXPECT_EQ(grid({{"X", {{"-1", 4}}}}), (std::vector<std::int64_t>{1, 4}));
}

std::string refused_placement(const std::string& text, const GivenPlacements& placements, std::int64_t sites) {
  try {
    with_placed_inputs(einrel::graph_of(text), placements, sites);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(PlacedInputs, SayWhatCannotBe) {
  const auto refused = [](const GivenPlacements& placements) {
    return refused_placement(placed_product, placements, 4);
  };
  EXPECT_EQ(refused({{"Y", {{"b", 2}}}}),
            "a placement of 'Y': the program has no input 'Y'\n  help: name an input that the program's outputs are "
            "computed from");
  EXPECT_EQ(refused({{"X", {{"g", 2}}}}),
            "the placement of 'X' cannot be: nothing reads it by a label 'g'\n  help: name 0 or b, 1 or f, copies");
  EXPECT_EQ(refused({{"X", {{"b", 8}}}}),
            "the placement of 'X' cannot be: its sites are more than 4\n  help: plan for more sites, or name fewer");
  EXPECT_EQ(refused({{"X", {{"b", 2}, {"copies", 3}}}}),
            "the placement of 'X' cannot be: its sites are more than 4\n  help: plan for more sites, or name fewer");
  EXPECT_EQ(refused_placement(placed_product, {{"W", {{"g", 5}}}}, 8),
            "the placement of 'W' cannot be: 5 parts of 'g', which has 4 positions\n  help: give at most as many parts "
            "as positions");
  EXPECT_EQ(refused({{"X", {{"b", 2}, {"0", 2}}}}),
            "the placement of 'X' cannot be: '0' is a dimension that it names already\n  help: name each once");
  EXPECT_EQ(refused({{"X", {{"b", 0}}}}), "the placement of 'X' cannot be: 0 sites along 'b'\n  help: give 1 or more");
  EXPECT_EQ(
      refused_placement("dims i=4\ninput A[i,i]\nT[] = sum[i,j] A[i,j] * A[j,i]\n", {{"A", {{"i", 2}}}}, 4),
      "the placement of 'A' cannot be: 'i' stands for several dimensions, 0 and 1\n  help: give the number of one, "
      "as in 0");
  EXPECT_EQ(refused_placement("dims i=4\ninput X[i]\nstate W[i] = 0\nnext W[i] = W[i] + X[i]\noutput W\n",
                              {{"W", {{"i", 2}}}}, 4),
            "a placement of 'W': it is a state, which lies where its step leaves it\n  help: leave 'W' out; placements "
            "are of inputs");
}

TEST(PlacedInputs, HaveNoSingleProgramWhereSitesHoldNothing) {
  const EinGraph graph = with_placed_inputs(einrel::graph_of(placed_product), {{"X", {{"b", 2}}}}, 4);
  const Planned planned =
      planner_named("eindecomp").plan(graph, {.sites = 4, .machine = {}, .batch = {}, .spmd = true});
  EXPECT_EQ(
      std::get<std::string>(planned),
      "no single program for all sites takes X from where it lies: 2 of 4 sites have it, and the others have no copy");
}

}  // namespace
}  // namespace einrel::test
