#include <gtest/gtest.h>

#include <string>

#include "plan/cost/cost.h"
#include "plan/cost/memory.h"
#include "plan/planners/planner.h"
#include "plan/refine/reduce_as_received.h"
#include "support/program.h"

namespace einrel::test {
namespace {

constexpr const char* product =
    "dims i=4000 j=4000 k=4000\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\noutput C\n";

/// Two sites along i and two along k; what they reduce lies in two pieces.
Plan by_rows_and_columns() {
  Plan plan{"by hand", 4, {one_part_per_site({2, 2}), one_part_per_site({2, 2}), one_part_per_site({2, 2, 1})}};
  return plan;
}

TEST(WholePieces, GoIntoTheResultOneAfterTheOther) {
  const EinGraph graph = einrel::graph_of(product);
  const Plan together = by_rows_and_columns();
  Plan plan = together;
  reduce_as_received(graph, plan);
  EXPECT_EQ(plan.vertices[2].parts, (PartitionVector{2, 2, 2}));
  EXPECT_EQ(plan.vertices[2].grid, together.vertices[2].grid);
  EXPECT_EQ(reduced_at_once(graph, plan).vertices, together.vertices);
  const Machine machine;
  EXPECT_EQ(costs_of(graph, plan, machine).received, costs_of(graph, together, machine).received);
  // A site receives a piece of A and one of B beside its own, 16 MB each; before, both were put together to 32 MB.
  EXPECT_EQ(peak_of(graph, together).bytes - peak_of(graph, plan).bytes, 2 * 2000 * 2000 * 4);
}

TEST(WholePieces, OfAnInputThatAllSitesWantAreCutAlongWhatIsReduced) {
  const EinGraph graph = einrel::graph_of(product);
  const Plan together{
      "by hand", 2, {one_part_per_site({2, 1}), one_part_per_site({1, 2}), one_part_per_site({1, 2, 1})}};
  Plan plan = together;
  reduce_as_received(graph, plan);
  EXPECT_EQ(plan.vertices[0], one_part_per_site({1, 2}));
  EXPECT_EQ(plan.vertices[1].parts, (PartitionVector{2, 2}));
  EXPECT_EQ(plan.vertices[1].grid, (PartitionVector{1, 2}));
  EXPECT_EQ(plan.vertices[2].parts, (PartitionVector{1, 2, 2}));
  const Machine machine;
  EXPECT_EQ(costs_of(graph, plan, machine).received, costs_of(graph, together, machine).received);
}

/// Z2 needs X0 whole, which Z0 could take in pieces: it is put together once, and not cut again where Z2 is first.
TEST(WholePieces, CostNothingWhereAnotherVertexNeedsThemTogether) {
  const std::string pieces = "Z0[e,f] = sum[a] X0[a,e] * X1[a,f]\nZ1[] = sum[e,f] Z0[e,f] * Z0[e,f]\n";
  const std::string whole = "Z2[d,a,b] = sum[e] X0[a,e] * X2[d,b,e]\n";
  Machine machine;
  machine.memory_bandwidth = 1e10;
  machine.network_bandwidth = 2e9;
  const auto seconds = [&](const EinGraph& graph, const char* planner) {
    return costs_of(graph, std::get<Plan>(planner_named(planner).plan(graph, {2, machine, CostKind::seconds, {}, {}})),
                    machine)
        .seconds;
  };
  const double call = machine.task_seconds;  // for one piece more
  for (const std::string& vertices : {pieces + whole, whole + pieces}) {
    const EinGraph graph = einrel::graph_of("dims a=512 b=128 d=100 e=128 f=512\ninput X0[a,e], X1[a,f], X2[d,b,e]\n" +
                                            vertices + "output Z0, Z1, Z2\n");
    EXPECT_LE(seconds(graph, "eindecomp"), seconds(graph, "eindecomp-paper") + call) << vertices;
  }
}

/// Both products have A in two pieces of j on each site; the second one takes what has come for the first.
TEST(WholePieces, AreTakenByEveryVertexThatComesByTheSameOnes) {
  const EinGraph graph = einrel::graph_of(
      "dims i=4000 j=4000 k=4000\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\n"
      "D[i,k] = sum[j] A[i,j] * (B[j,k] + 1)\noutput C, D\n");
  Plan plan = by_rows_and_columns();
  while (plan.vertices.size() < graph.vertices.size()) plan.vertices.push_back(plan.vertices[2]);
  ASSERT_EQ(graph.vertices.size(), 4U);
  reduce_as_received(graph, plan);
  EXPECT_EQ(plan.vertices[2].parts, (PartitionVector{2, 2, 2}));
  EXPECT_EQ(plan.vertices[3].parts, (PartitionVector{2, 2, 2}));
}

TEST(WholePieces, AreLeftWhereOperandsAreCutInDifferentWays) {
  const EinGraph graph = einrel::graph_of(product);
  Plan plan = by_rows_and_columns();
  plan.vertices[1] = one_part_per_site({4, 1});
  const std::vector<VertexPlan> before = plan.vertices;
  reduce_as_received(graph, plan);
  EXPECT_EQ(plan.vertices, before);
}

TEST(WholePieces, OfAnInputThatLiesWholeAreMadeWhereNobodyElseReadsIt) {
  const std::string other = std::string(product) + "D[i] = sum[j] A[i,j]\noutput D\n";
  for (const bool has_other_reader : {false, true}) {
    const EinGraph graph = einrel::graph_of(has_other_reader ? other : product);
    Plan plan{"by hand", 2, {one_part_per_site({2, 1}), one_part_per_site({2, 1}), one_part_per_site({2, 1, 1})}};
    if (has_other_reader) plan.vertices.push_back(one_part_per_site({2, 1}));
    reduce_as_received(graph, plan);
    EXPECT_EQ(plan.vertices[0].parts, (has_other_reader ? PartitionVector{2, 1} : PartitionVector{2, 2}));
    EXPECT_EQ(plan.vertices[2].parts, (has_other_reader ? PartitionVector{2, 1, 1} : PartitionVector{2, 1, 2}));
  }
}

TEST(WholePieces, AreNotCutForLittleWork) {
  const EinGraph graph = einrel::graph_of(product, {{{"j", 500}}, {}});
  Plan plan = by_rows_and_columns();
  reduce_as_received(graph, plan);
  EXPECT_EQ(plan.vertices, by_rows_and_columns().vertices);
}

}  // namespace
}  // namespace einrel::test
