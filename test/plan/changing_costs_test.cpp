#include "plan/refine/changing_costs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "plan/cost/cost.h"
#include "plan/lower.h"
#include "plan/planners/planner.h"
#include "support/program.h"
#include "support/random_plan.h"
#include "support/rounds.h"

namespace einrel::test {
namespace {

/// Programs with all kinds of vertices, with operands of several types that are read alike, padded ones, and states.
std::vector<std::string> programs() {
  std::vector<std::string> all = plannable_programs();
  all.emplace_back(
      "dims i=8 j=6\ninput X[i,j], W[i,j] : bf16, V[i,j] : f32\nA[i,j] = X[i,j] * W[i,j]\nB[i,j] = X[i,j] * V[i,j]\n"
      "C[i] = sum[j] A[i,j] * B[i,j]\n");
  all.emplace_back("dims i=10 p=7\ninput A[i], B[p]\nY[i] = pad(A[i], 0)\nZ[i] = pad(B[i], 0)\nW[i] = Y[i] + Z[i]\n");
  all.emplace_back(
      "dims b=12 i=6 j=4\ninput X[b,i], T[b,j]\nstate W[i,j] = 0\nstate M[i,j] = 0\nY[b,j] = sum[i] X[b,i] * W[i,j]\n"
      "D[b,j] = Y[b,j] - T[b,j]\nG[i,j] = sum[b] X[b,i] * D[b,j]\nnext M[i,j] = 0.9 * M[i,j] + G[i,j]\n"
      "next W[i,j] = W[i,j] - 0.1 * G[i,j]\noutput Y\n");
  return all;
}

void expect_costs_alike(const EinGraph& graph, Plan plan, const Plan& other, const Machine& machine, CostKind kind) {
  Transfers transfers(plan.sites, machine);
  ChangingCosts costs(graph, plan, machine, kind, transfers);
  const auto expect_near = [&](double found, const Plan& of) {
    const double exact = costs_of(graph, of, machine).of(kind);
    EXPECT_NEAR(found, exact, 1e-9 * exact);
  };
  expect_near(costs.now().total, plan);
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (std::holds_alternative<Input>(graph.vertices[v].op)) continue;
    SCOPED_TRACE(graph.vertices[v].name);
    const VertexPlan& way = other.vertices[v];
    const auto change = costs.with(v, way);
    ASSERT_TRUE(change.has_value());
    for (const auto& [changed, own] : change->plans) plan.vertices[changed] = own;
    expect_near(change->total, plan);
    costs.take(*change);
    expect_near(costs.now().total, plan);
  }
}

TEST(ChangingCosts, AreThoseOfTheWholePlanAfterEveryChange) {
  const std::vector<std::string> all = programs();
  for (int seed = 0; seed < rounds(60); ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const std::string& text = all[static_cast<std::size_t>(random.between(0, std::ssize(all) - 1))];
    const EinGraph graph = einrel::graph_of(text);
    Plan plan = random_plan(random, graph);
    Plan other = random_plan(random, graph);
    plan.sites = other.sites = std::max(plan.sites, other.sites);
    Machine machine;
    machine.sites_per_node = random.between(1, 3);
    if (plan.sites % 2 == 0 && random.chance(0.5)) machine.links.push_back({"between", plan.sites / 2, 1e8, 1e-5});
    for (const CostKind kind : all_cost_kinds) {
      SCOPED_TRACE(fmt::format("seed {}, {} sites, {}\n{}", seed, plan.sites, name_of(kind), text));
      expect_costs_alike(graph, plan, other, machine, kind);
    }
  }
}

/// What computes the same of tensors of other shapes can be cut in other ways.
TEST(Planning, FollowsTheShapesOfWhatIsRead) {
  const EinGraph graph = einrel::graph_of(
      "dims i=100 p=70\ninput A[i], B[p]\nY[i] = pad(A[i], 0)\nZ[i] = pad(B[i], 0)\nW[i] = Y[i] + Z[i]\n"
      "output Y, Z, W\n");
  for (const CostKind kind : all_cost_kinds) {
    const Planned planned =
        planner_named("eindecomp").plan(graph, {.sites = 5, .machine = {}, .cost = kind, .batch = std::nullopt});
    EXPECT_NO_THROW(lower(graph, std::get<Plan>(planned)));
  }
}

}  // namespace
}  // namespace einrel::test
