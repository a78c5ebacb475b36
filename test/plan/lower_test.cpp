#include "plan/lower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "einsum/reference.h"
#include "ia/interpret.h"
#include "ia/traffic.h"
#include "lowering_check.h"
#include "plan/planners/planner.h"
#include "plan/refine/finer_parts.h"
#include "plan/routes.h"
#include "support/compare.h"
#include "support/counted_inputs.h"
#include "support/program.h"
#include "support/random_einsum.h"
#include "support/random_plan.h"

namespace einrel::test {
namespace {

struct PlannedProgram {
  EinGraph graph;
  Plan plan;
  std::string name;  ///< for messages
};

/// One of the programs that plans cut, in turn, and a random plan of it.
PlannedProgram planned_program(Random& random, std::uint64_t seed) {
  const std::string& text = plannable_programs()[seed % plannable_programs().size()];
  EinGraph graph = einrel::graph_of(text);
  Plan plan = random_plan(random, graph);
  return {std::move(graph), std::move(plan), "seed " + std::to_string(seed) + "\n" + text};
}

TEST(Lowering, ComputesWhatTheReferenceComputes) {
  for (std::uint64_t seed = 0; seed < 70; ++seed) {
    Random random(seed);
    const auto [graph, plan, name] = planned_program(random, seed);
    SCOPED_TRACE(name);
    expect_computes_reference(graph, plan);
  }
}

/// What people run, by itself and several at a time, of programs that have a batch, hidden units or heads.
TEST(Lowering, OfSchemesMovesAndComputesWhatItShould) {
  std::vector<std::string> texts = plannable_programs();
  texts.emplace_back(
      "dims b=8 f=6 g=8 h=5 k=4\ninput X[b,f], W1[f,g], W2[g,h], W3[h,k], Y[b,k]\nA[b,g] = relu(sum[f] X[b,f] * "
      "W1[f,g])\nB[b,h] = sum[g] A[b,g] * W2[g,h]\nC[b,k] = sum[h] B[b,h] * W3[h,k]\nD[b,k] = C[b,k] - Y[b,k]\n"
      "E[b,h] = sum[k] D[b,k] * W3[h,k]\nF[b,g] = step(A[b,g]) * sum[h] E[b,h] * W2[g,h]\nV1[f,g] = W1[f,g] - 0.125 * "
      "sum[b] X[b,f] * F[b,g]\nV2[g,h] = W2[g,h] - 0.125 * sum[b] A[b,g] * E[b,h]\nV3[h,k] = W3[h,k] - 0.125 * sum[b] "
      "B[b,h] * D[b,k]\nloss[] = sum[b,k] D[b,k] * D[b,k]\noutput V1, V2, V3, loss\n");
  texts.emplace_back(
      "dims b=4 s=6 t=6 e=8 h=2 d=4\ninput X[b,s,e], WQ[h,d,e], WK[h,d,e], WV[h,d,e], WO[e,h,d]\nQ[b,s,h,d] = sum[e] "
      "X[b,s,e] * WQ[h,d,e]\nK[b,t,h,d] = sum[e] X[b,t,e] * WK[h,d,e]\nV[b,t,h,d] = sum[e] X[b,t,e] * WV[h,d,e]\n"
      "P[b,h,s,t] = softmax[t](0.01 * sum[d] Q[b,s,h,d] * K[b,t,h,d])\nO[b,s,h,d] = sum[t] P[b,h,s,t] * V[b,t,h,d]\n"
      "Y[b,s,e] = X[b,s,e] + sum[h,d] O[b,s,h,d] * WO[e,h,d]\noutput Y\n");
  int plans = 0;
  for (const std::string& text : texts) {
    SCOPED_TRACE(text);
    const EinGraph graph = einrel::graph_of(text);
    for (const auto& [planner, sites] :
         std::vector<std::pair<std::string, std::int64_t>>{{"data", 4},
                                                           {"fsdp", 4},
                                                           {"tensor", 3},
                                                           {"tensor", 4},
                                                           {"sequence", 3},
                                                           {"heads", 4},
                                                           {"data:2 x tensor:2", 4},
                                                           {"fsdp:3 x tensor:2", 6},
                                                           {"data:2 x fsdp:2", 4},
                                                           {"data:2 x sequence:2 x heads:2", 8},
                                                           {"data:4 x data:2", 8},
                                                           {"tensor:2 x data:3 x tensor:2", 12},
                                                           {"sequence:2 x data:2", 4}}) {
      SCOPED_TRACE(planner);
      const Planned planned = planner_named(planner).plan(graph, {sites, {}, CostKind::seconds, {}, {}});
      const auto* const plan = std::get_if<Plan>(&planned);
      if (plan == nullptr) continue;
      ++plans;
      expect_lowering_agrees(graph, *plan, planner);
      expect_computes_reference(graph, *plan);
    }
  }
  EXPECT_GE(plans, 60);
}

TEST(Lowering, OfFinerPartsMovesWhatTheCostModelSays) {
  int finer_plans = 0;
  for (std::uint64_t seed = 0; seed < 70; ++seed) {
    Random random(seed);
    const auto [graph, plan, name] = planned_program(random, seed);
    Plan finer = plan;
    make_parts_finer(graph, finer, std::vector<std::int64_t>(graph.vertices.size(), random.between(1, 400)),
                     InputParts::of_chunks);
    for (std::size_t v = 0; v < plan.vertices.size(); ++v) EXPECT_EQ(finer.vertices[v].grid, plan.vertices[v].grid);
    finer_plans += plan.vertices == finer.vertices ? 0 : 1;
    expect_lowering_agrees(graph, finer, name);
  }
  EXPECT_GT(finer_plans, 50);
}

/// Sums columns on `sites` sites: as many along k as `along_k`, the others along j, which share out the sums.
Plan scattered_sums(const EinGraph& graph, std::int64_t sites, std::int64_t along_k) {
  Plan plan{"", sites, {one_part_per_site({1, 1}), one_part_per_site({1, 1})}};
  const std::vector<std::string> names = label_names(graph.vertices[1]);
  VertexPlan& sums = plan.vertices[1];
  for (std::size_t l = 0; l < names.size(); ++l) {
    sums.grid[l] = names[l] == "k" ? along_k : sites / along_k;
    sums.parts[l] = sites / (names[l] == "k" ? 1 : along_k);
    if (names[l] == "k") sums.scatter = l;
  }
  number_sites(graph, plan);
  return plan;
}

TEST(Lowering, GivesEverySiteOfAGroupAPieceOfWhatItReduces) {
  const EinGraph graph = einrel::graph_of("dims j=8 k=16\ninput X[j,k]\nZ[k] = sum[j] X[j,k]\n");
  for (const std::int64_t along_k : {1, 2, 4}) {
    const Plan plan = scattered_sums(graph, 8, along_k);
    const Layout pieces{{{{8, 1}, 8, 1}}, {}};
    EXPECT_EQ(result_layout(graph.vertices[1], plan.vertices[1]), pieces);
    // Two sums each, of which the others of a group have a part.
    const std::int64_t others = 8 / along_k - 1;
    EXPECT_EQ(costs_of(graph, plan, {}).received, std::vector<std::int64_t>(8, others * 2 * 4));
    expect_lowering_agrees(graph, plan, std::to_string(along_k) + " sites along k");
  }
}

/// Routes that do not begin where the tensor was computed.
std::size_t detours_of(const EinGraph& graph, const Plan& plan) {
  Transfers transfers(plan.sites);
  const Routes routes(graph, plan, transfers);
  std::size_t detours = 0;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    for (std::size_t o = 0; o < graph.vertices[v].inputs.size(); ++o) {
      const auto number = routes.route_of(v, o);
      if (number && routes.route(graph.vertices[v].inputs[o].index, *number).source) ++detours;
    }
  }
  return detours;
}

TEST(Lowering, TakesATensorFromWhereItWasBroughtBefore) {
  // Y lies by columns, Z needs it by rows, and W by the same rows in smaller chunks.
  const EinGraph graph = einrel::graph_of(
      "dims i=4 j=4\ninput X[i,j]\nY[i,j] = X[i,j] + 1\nZ[i,j] = Y[i,j] * 2\nW[i,j] = Y[i,j] * 3\noutput Z, W\n");
  const VertexPlan by_columns{{1, 2}, {1, 2}, {0, 1}};
  const VertexPlan by_rows{{2, 1}, {2, 1}, {1, 0}};
  const VertexPlan by_smaller_rows{{4, 1}, {2, 1}, {1, 0}};
  const Plan plan{"test", 2, {by_columns, by_columns, by_rows, by_smaller_rows}};
  EXPECT_EQ(detours_of(graph, plan), 1U);
  const PlanCosts costs = costs_of(graph, plan, {});
  EXPECT_EQ(costs.vertices[2].bytes(), 2 * 4 * 4);  // 4 elements to each site
  EXPECT_EQ(costs.vertices[3].bytes(), 0);
  expect_lowering_agrees(graph, plan, "");
}

TEST(Lowering, OfNothingMovesWhatTheCostModelSays) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const std::string text =
        "dims a=4 b=0 c=6 e=4\ninput X[e,a], Y[e,b], V[e,c]\nS[a,b,c] = sum[e] X[e,a] * Y[e,b] * V[e,c]\n"
        "T[a,b,e] = X[e,a] * Y[e,b]\nU[a] = sum[b,e] X[e,a] * Y[e,b]\nW[a] = sum[e] X[e,a]\noutput S, T, U, W\n";
    const EinGraph graph = einrel::graph_of(text);
    expect_lowering_agrees(graph, random_plan(random, graph), "seed " + std::to_string(seed));
  }
}

TEST(Lowering, MovesExactlyTheBytesOfTheCostModel) {
  std::size_t detours = 0;
  int scattered = 0;
  int copied = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const auto [graph, plan, name] = planned_program(random, seed);
    detours += detours_of(graph, plan);
    for (const VertexPlan& vertex : plan.vertices) {
      scattered += vertex.scatter ? 1 : 0;
      copied += vertex.copies.empty() ? 0 : 1;
    }
    expect_lowering_agrees(graph, plan, name);
  }
  EXPECT_GT(scattered, 50);
  EXPECT_GT(copied, 100);
  EXPECT_GT(detours, 20U);
}

}  // namespace
}  // namespace einrel::test
