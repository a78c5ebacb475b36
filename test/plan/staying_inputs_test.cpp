#include "plan/staying_inputs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "einsum/graph/vertex_facts.h"
#include "every_plan.h"
#include "ia/traffic.h"
#include "plan/cost/cost.h"
#include "plan/cost/memory.h"
#include "plan/lower.h"
#include "plan/planners/planner.h"
#include "plan/refine/changing_costs.h"
#include "support/program.h"
#include "support/random_plan.h"
#include "support/rounds.h"

namespace einrel::test {
namespace {

constexpr std::array<std::int64_t, 3> numbers_of_steps{1, 2, 5};

std::set<std::string> some_inputs(Random& random, const EinGraph& graph) {
  std::set<std::string> names;
  for (const Vertex& vertex : graph.vertices) {
    if (std::holds_alternative<Input>(vertex.op) && random.chance(0.3)) names.insert(vertex.name);
  }
  return names;
}

/// A step of training on what stays, with a state that never changes.
constexpr const char* with_states =
    "dims b=12 i=6 j=4\ninput X[b,i], T[b,j]\nstate W[i,j] = 0\nstate C[j] = 2\nY[b,j] = sum[i] X[b,i] * W[i,j]\n"
    "D[b,j] = C[j] * (Y[b,j] - T[b,j])\nG[i,j] = sum[b] X[b,i] * D[b,j]\nS[b] = sum[i] X[b,i]\n"
    "next W[i,j] = W[i,j] - 0.1 * G[i,j]\noutput Y, S\n";

TEST(StayingInputs, MoveOnceWhatTheLoweredPlanMovesForThem) {
  std::vector<std::string> programs = plannable_programs();
  programs.emplace_back(with_states);
  std::int64_t moved = 0;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(200)); ++seed) {
    Random random(seed);
    const std::string& text = programs[seed % programs.size()];
    const EinGraph graph = einrel::graph_of(text);
    const Plan plan = random_plan(random, graph);
    const std::set<std::string> fed = some_inputs(random, graph);
    const PlanCosts of_one = costs_of(graph, plan, {});
    for (const std::int64_t steps : numbers_of_steps) {
      SCOPED_TRACE(fmt::format("seed {}, {} steps\n{}", seed, steps, text));
      const EinGraph repeated = with_staying_inputs(graph, steps, fed);
      const PlanCosts costs = costs_of(repeated, plan, {});
      const LoweredPlan lowered = lower(repeated, plan);
      const Traffic once = bytes_of(lowered.ia.store, lowered.once);
      EXPECT_EQ(costs.steps, steps_of(repeated));
      EXPECT_EQ(costs.bytes, bytes_of(lowered.ia.store, lowered.ia.plan).total);
      EXPECT_EQ(costs.received, of_one.received) << "in the first step";
      EXPECT_EQ(costs.once.bytes, once.total);
      EXPECT_EQ(costs.once.received, once.received);
      moved += once.total;
      const double all = static_cast<double>(costs.bytes + (costs.steps - 1) * (costs.bytes - costs.once.bytes));
      EXPECT_NEAR(costs.of(CostKind::bytes), all / static_cast<double>(costs.steps), 1e-9 * all);
    }
  }
  EXPECT_GT(moved, 100'000);
}

TEST(StayingInputs, ChangeWhatSearchesReckonWith) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const EinGraph graph = einrel::graph_of(plannable_programs()[seed % plannable_programs().size()]);
    Plan plan = random_plan(random, graph);
    plan.sites = std::max<std::int64_t>(plan.sites, 2);  // on one, there is nowhere to move to
    const EinGraph repeated = with_staying_inputs(graph, random.between(2, 9), some_inputs(random, graph));
    for (const CostKind kind : all_cost_kinds) {
      Transfers transfers(plan.sites);
      const Machine machine;
      const ChangingCosts changing(repeated, plan, machine, kind, transfers);
      const double exact = costs_of(repeated, plan, machine).of(kind);
      EXPECT_NEAR(changing.now().total, exact, 1e-9 * exact) << "seed " << seed << ", " << name_of(kind);
    }
  }
}

TEST(StayingInputs, AreHeldWithTheirCopiesAllTheTime) {
  // On 2 sites: W lies by its columns, and is used whole by the last vertex; 8 * 6 floats, of which each has half.
  const EinGraph graph = einrel::graph_of(
      "dims b=4 i=8 j=6\ninput X[b,i], W[i,j]\nA[b,j] = sum[i] X[b,i] * W[i,j]\nB[b,j] = exp(A[b,j])\n"
      "Y[b,i] = sum[j] B[b,j] * W[i,j]\n");
  Plan plan{"", 2, {}};
  for (const Vertex& vertex : graph.vertices) {
    PartitionVector grid(label_extents(vertex).size(), 1);
    const std::vector<std::string> names = label_names(vertex);
    const std::string cut = vertex.name == "W" ? "1" : vertex.name == "A" || vertex.name == "B" ? "j" : "b";
    for (std::size_t l = 0; l < names.size(); ++l) {
      if (names[l] == cut) grid[l] = 2;
    }
    plan.vertices.push_back(one_part_per_site(grid));
  }
  const SitePeak of_one = peak_of(graph, plan);
  const SitePeak of_many = peak_of(with_staying_inputs(graph, 3, {"X"}), plan);
  const auto at = [&](const SitePeak& peak, const std::string& name) {
    const auto vertex = std::find_if(graph.vertices.begin(), graph.vertices.end(),
                                     [&](const Vertex& each) { return each.name == name; });
    return peak.by_vertex[static_cast<std::size_t>(vertex - graph.vertices.begin())];
  };
  constexpr std::int64_t copy = 8 * 6 * 4;
  EXPECT_EQ(at(of_many, "A") - at(of_one, "A"), copy);
  EXPECT_EQ(at(of_many, "B") - at(of_one, "B"), copy);
  EXPECT_EQ(at(of_many, "Y"), at(of_one, "Y"));
}

/// Weights that two vertices need in two ways: what one step gains by dividing them, many steps lose.
TEST(StayingInputs, AreLeftWhereTheyAreUsed) {
  const EinGraph graph = einrel::graph_of(
      "dims b=16 i=64 j=64\ninput X[b,i], W[i,j]\nA[b,j] = sum[i] X[b,i] * W[i,j]\nH[b,j] = relu(A[b,j])\n"
      "Y[b,i] = sum[j] H[b,j] * W[i,j]\n");
  const auto planned = [&](std::int64_t steps) {
    const EinGraph repeated = with_staying_inputs(graph, steps, {"X"});
    const Planned found = planner_named("eindecomp").plan(repeated, {4, {}, CostKind::bytes, {}});
    return costs_of(repeated, std::get<Plan>(found), {});
  };
  const PlanCosts one = planned(1);
  const PlanCosts many = planned(1000);
  EXPECT_GT(one.bytes, 0);
  EXPECT_EQ(many.bytes_of_later_steps(), 0) << "every site has all weights, and its part of the batch";
  EXPECT_EQ(many.once.bytes, 3 * 64 * 64 * 4);
  EXPECT_LT(one.bytes, many.bytes) << "for one step that does not pay";
}

TEST(StayingInputs, CostTogetherWithAllStepsNearlyTheLeastThatAnyPlanDoes) {
  int compared = 0;
  int optimal = 0;
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const std::string text = random_dag(random, 3);
    const EinGraph graph = einrel::graph_of(text);
    const std::int64_t steps = random.one_of(std::array<std::int64_t, 3>{2, 5, 100});
    const EinGraph repeated = with_staying_inputs(graph, steps, some_inputs(random, graph));
    const std::int64_t sites = random.one_of(std::array<std::int64_t, 4>{2, 3, 4, 6});
    const std::optional<double> least = least_of_every_plan(repeated, sites, CostKind::bytes);
    if (!least) continue;
    const Planned found = planner_named("eindecomp").plan(repeated, {sites, {}, CostKind::bytes, {}});
    const double cost = costs_of(repeated, std::get<Plan>(found), {}).of(CostKind::bytes);
    const double ratio = *least == 0 ? 1 : cost / *least;
    EXPECT_TRUE(*least > 0 || cost == 0) << "seed " << seed << "\n" << text;
    ++compared;
    optimal += ratio <= 1 + 1e-12 ? 1 : 0;
    sum += ratio;
  }
  EXPECT_GE(compared, 100);
  EXPECT_GE(optimal, compared * 8 / 10) << "of " << compared;
  EXPECT_LE(sum / compared, 1.05);
}

TEST(StayingInputs, AreNoStatesThatChange) {
  const EinGraph graph = with_staying_inputs(einrel::graph_of(with_states), 7, {"T"});
  for (const Vertex& vertex : graph.vertices) {
    const bool is_it = vertex.name == "X" || vertex.name == "C";
    EXPECT_EQ(stays(vertex), is_it) << vertex.name;
    EXPECT_EQ(share_of_step(vertex), is_it ? 1.0 / 7 : 1) << vertex.name;
  }
}

TEST(StayingInputs, RefuseToBeFedByAnotherName) {
  try {
    with_staying_inputs(einrel::graph_of(with_states), 2, {"XX"});
    FAIL() << "there is no such input";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("'XX'"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("did you mean"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace einrel::test
