#include "plan/cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/eindecomp.h"
#include "plan/numbering.h"
#include "support/program.h"

namespace einrel::test {
namespace {

Machine without_bandwidth() {
  Machine machine;
  machine.network_latency = 1;
  machine.network_bandwidth = 1e30;
  return machine;
}

struct Planned {
  EinGraph graph;
  Plan plan;
};
Planned on_four_sites(const std::string& program, const std::vector<PartitionVector>& grids) {
  Planned planned{einrel::graph_of(program), {"test", 4, {}}};
  for (const PartitionVector& grid : grids) planned.plan.vertices.push_back(one_part_per_site(grid));
  return planned;
}

/// How long the last vertex receives.
double messages_to_last(Planned planned) {
  number_sites(planned.graph, planned.plan);
  const VertexCost last = costs_of(planned.graph, planned.plan, without_bandwidth()).vertices.back();
  EXPECT_GT(last.bytes(), 0);
  return last.moving;
}

/// How long searches think that it does, from the vertex before it.
double messages_expected(const Planned& planned) {
  const auto& [graph, plan] = planned;
  return cost_model(CostKind::seconds, without_bandwidth())
      ->of_moves(graph.vertices[1], {result_layout(graph.vertices[1], plan.vertices[1])},
                 {needed_layout(graph.vertices[2], 0, plan.vertices[2])})
      .front();
}

TEST(Seconds, CountTheMessagesThatASiteWaitsFor) {
  const std::string twice = "dims i=8 j=8\ninput X[i,j]\nA[i,j] = X[i,j] + 1\nB[i,j] = A[i,j] * 2\noutput B\n";
  const auto expect = [](const std::string& program, const std::vector<PartitionVector>& grids, double messages) {
    const Planned planned = on_four_sites(program, grids);
    EXPECT_NEAR(messages_to_last(planned), messages, 1e-6);
    EXPECT_NEAR(messages_expected(planned), messages, 1e-6);
  };
  expect(twice, {{1, 1}, {4, 1}, {1, 4}}, 3);  // of four pieces, one is its own
  expect(twice, {{1, 1}, {4, 1}, {1, 1}}, 3);
  expect(twice, {{1, 1}, {1, 1}, {4, 1}}, 1);
  expect(twice, {{1, 1}, {4, 1}, {2, 2}}, 1);  // of two pieces
  expect(twice, {{1, 1}, {2, 1}, {4, 1}}, 1);
  const std::string outer = "dims i=8 k=8\ninput X[i]\nA[i] = X[i] + 1\nB[i,k] = A[i] * (k + 1)\noutput B\n";
  expect(outer, {{1}, {1}, {1, 4}}, 2);  // by way of another site
  expect(outer, {{1}, {4}, {1, 4}}, 3);
}

TEST(Seconds, CountTheMessagesOfPartialResults) {
  const std::string sum = "dims i=8 j=8\ninput X[i,j]\nA[i,j] = X[i,j] + 1\nS[j] = sum[i] A[i,j]\noutput S\n";
  const std::vector<PartitionVector> grids{{4, 1}, {4, 1}, {1, 4}};
  EXPECT_NEAR(messages_to_last(on_four_sites(sum, grids)), 3, 1e-6);
  Planned shared_out = on_four_sites(sum, grids);
  shared_out.plan.vertices.back().scatter = 0;
  EXPECT_NEAR(messages_to_last(shared_out), 3, 1e-6);
  const std::string least = "dims i=8 j=8\ninput X[i,j]\nA[i,j] = X[i,j] + 1\nS[j] = argmin[i] A[i,j]\noutput S\n";
  EXPECT_NEAR(messages_to_last(on_four_sites(least, grids)), 3 + 2 + 3, 1e-6);  // there, back, and there
}

/// By how much it takes longer to compute the last vertex when its result is shared out along label 1.
double seconds_of_sharing_out(Planned planned) {
  Machine machine;
  machine.memory_bandwidth = 1;
  machine.flops_per_core = 1e30;
  machine.task_seconds = 0;
  const auto seconds = [&] {
    Planned numbered = planned;
    number_sites(numbered.graph, numbered.plan);
    const VertexCost last = costs_of(numbered.graph, numbered.plan, machine).vertices.back();
    return last.seconds - last.moving;
  };
  const double alone = seconds();
  planned.plan.vertices.back().parts[1] *= 4;
  planned.plan.vertices.back().scatter = 1;
  return seconds() - alone;
}

TEST(Seconds, CountTheCopiesOfInputsThatAreCutForAResultThatIsSharedOut) {
  const std::string product = "C[i,k] = sum[j] A[i,j] * B[j,k]\noutput C\n";
  constexpr double share = 8 * 8 * 4 / 4;  // bytes of B
  EXPECT_NEAR(seconds_of_sharing_out(
                  on_four_sites("dims i=8 j=8 k=8\ninput A[i,j], B[j,k]\n" + product, {{1, 4}, {4, 1}, {1, 1, 4}})),
              2 * share, 1e-6);
  EXPECT_NEAR(
      seconds_of_sharing_out(on_four_sites("dims i=8 j=8 k=8\ninput A[i,j], X[j,k]\nB[j,k] = X[j,k] + 1\n" + product,
                                           {{1, 4}, {4, 1}, {4, 1}, {1, 1, 4}})),
      0, 1e-6);
}

TEST(Seconds, OfAMoveAreAtMostThoseOfMisplacing) {
  constexpr std::int64_t sites = 6;
  const EinGraph graph = einrel::graph_of(
      "dims i=7 j=12 k=30\ninput X[i,j], Y[j,k]\nA[i,j] = X[i,j] + 1\nB[i,k] = sum[j] A[i,j] * Y[j,k]\noutput B\n");
  const auto model = cost_model(CostKind::seconds, without_bandwidth());
  const Candidates candidates = site_candidates(graph, sites, {}, CostKind::seconds);
  std::vector<Layout> have;
  for (const VertexPlan& plan : candidates(graph.vertices[2], 2))
    have.push_back(result_layout(graph.vertices[2], plan));
  std::vector<Layout> need;
  for (const VertexPlan& plan : candidates(graph.vertices[3], 3))
    need.push_back(needed_layout(graph.vertices[3], 0, plan));
  ASSERT_GT(have.size(), 5U);
  ASSERT_GT(need.size(), 10U);
  const std::vector<double> moves = model->of_moves(graph.vertices[2], have, need);
  for (std::size_t m = 0; m < moves.size(); ++m) {
    const Layout& to = need[m % need.size()];
    const double most = model->of_input(graph.vertices[2], to) + model->of_misplacing(graph.vertices[2], to, sites);
    EXPECT_LE(moves[m], most + 1e-6) << m;
  }
}

}  // namespace
}  // namespace einrel::test
