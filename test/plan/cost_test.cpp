#include "plan/cost/cost.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/planners/eindecomp.h"
#include "plan/refine/numbering.h"
#include "support/program.h"

namespace einrel::test {
namespace {

Machine without_bandwidth() {
  Machine machine;
  machine.network_latency = 1;
  machine.network_bandwidth = 1e30;
  return machine;
}

struct OnSites {
  EinGraph graph;
  Plan plan;
};
OnSites on_four_sites(const std::string& program, const std::vector<PartitionVector>& grids) {
  OnSites planned{einrel::graph_of(program), {"test", 4, {}}};
  for (const PartitionVector& grid : grids) planned.plan.vertices.push_back(one_part_per_site(grid));
  return planned;
}

/// How long the last vertex receives.
double messages_to_last(OnSites planned) {
  number_sites(planned.graph, planned.plan);
  const VertexCost last = costs_of(planned.graph, planned.plan, without_bandwidth()).vertices.back();
  EXPECT_GT(last.bytes(), 0);
  return last.moving;
}

/// How long searches think that it does, from the vertex before it.
double messages_expected(const OnSites& planned) {
  const auto& [graph, plan] = planned;
  return cost_model(CostKind::seconds, without_bandwidth())
      ->of_moves(graph.vertices[1], {result_layout(graph.vertices[1], plan.vertices[1])},
                 {needed_layout(graph.vertices[2], 0, graph.vertices[1].bound, plan.vertices[2])})
      .front();
}

TEST(Seconds, CountTheMessagesThatASiteWaitsFor) {
  const std::string twice = "dims i=8 j=8\ninput X[i,j]\nA[i,j] = X[i,j] + 1\nB[i,j] = A[i,j] * 2\noutput B\n";
  const auto expect = [](const std::string& program, const std::vector<PartitionVector>& grids, double messages) {
    const OnSites planned = on_four_sites(program, grids);
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
  OnSites shared_out = on_four_sites(sum, grids);
  shared_out.plan.vertices.back().scatter = 0;
  EXPECT_NEAR(messages_to_last(shared_out), 3, 1e-6);
  const std::string least = "dims i=8 j=8\ninput X[i,j]\nA[i,j] = X[i,j] + 1\nS[j] = argmin[i] A[i,j]\noutput S\n";
  EXPECT_NEAR(messages_to_last(on_four_sites(least, grids)), 3 + 2 + 3, 1e-6);  // there, back, and there
}

Machine only_memory() {
  Machine machine;
  machine.memory_bandwidth = 1;
  machine.processor.flops_per_core = 1e30;
  machine.task_seconds = 0;
  machine.network_latency = 0;
  machine.network_bandwidth = 1e30;
  return machine;
}

/// By how much a plan takes longer when C is shared out along its label 1, with so many parts of B along that, beside
/// what is saved by each site adding up a quarter of C instead of one site all of it: three parts, one after the other.
double seconds_of_sharing_out(const OnSites& planned, std::int64_t parts_of_b) {
  const auto vertex_of = [](OnSites& of, const std::string& name) -> VertexPlan& {
    const auto is_meant = [&](const Vertex& vertex) { return vertex.name == name; };
    const auto found = std::find_if(of.graph.vertices.begin(), of.graph.vertices.end(), is_meant);
    return of.plan.vertices[static_cast<std::size_t>(found - of.graph.vertices.begin())];
  };
  const auto seconds = [](OnSites of) {
    number_sites(of.graph, of.plan);
    return costs_of(of.graph, of.plan, only_memory()).seconds;
  };
  OnSites shared_out = planned;
  vertex_of(shared_out, "B").parts[1] *= parts_of_b;
  vertex_of(shared_out, "C").parts[1] *= 4;
  vertex_of(shared_out, "C").scatter = 1;
  constexpr double added = 3 * 8.0 * 8 * 4;  // bytes read
  return seconds(shared_out) - added / 4 - (seconds(planned) - added);
}

TEST(Seconds, CountTheCopiesOfWhatIsCutBecauseAResultIsSharedOut) {
  const std::string inputs = "dims i=8 j=8 k=8\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\noutput C\n";
  const OnSites read_once = on_four_sites(inputs, {{1, 4}, {4, 1}, {1, 1, 4}});
  const OnSites read_twice =
      on_four_sites(inputs + "D[j,k] = B[j,k] + 1\noutput D\n", {{1, 4}, {4, 1}, {1, 1, 4}, {4, 1}});
  const OnSites computed = on_four_sites(
      "dims i=8 j=8 k=8\ninput X[j,k], A[i,j]\nB[j,k] = X[j,k] + 1\nC[i,k] = sum[j] A[i,j] * B[j,k]\noutput C\n",
      {{4, 1}, {1, 4}, {4, 1}, {1, 1, 4}});
  constexpr double share = 8 * 8;                              // bytes of a quarter of B
  EXPECT_NEAR(seconds_of_sharing_out(read_once, 1), 0, 1e-6);  // it lies as its one reader wants
  EXPECT_NEAR(seconds_of_sharing_out(read_twice, 1), 2 * share, 1e-6);
  EXPECT_NEAR(seconds_of_sharing_out(computed, 1), 2 * share, 1e-6);
  EXPECT_NEAR(seconds_of_sharing_out(computed, 4), 0, 1e-6);
}

/// How long a sum over four sites takes, of which one adds up what the three others have.
double summing_seconds(std::int64_t results, const std::string& type, const std::string& reducer,
                       const Machine& machine = only_memory()) {
  OnSites planned = on_four_sites(
      fmt::format("dims i={} j=8\ninput A[i,j] : {}\nC[i] = {}[j] A[i,j]\n", results, type, reducer), {{1, 4}, {1, 4}});
  number_sites(planned.graph, planned.plan);
  return costs_of(planned.graph, planned.plan, machine).seconds;
}

/// What remains of three sites' sums goes through the memory of their owner once more.
TEST(Seconds, CountThePassThatFinishesMeansAndNarrowSums) {
  constexpr double added = 3 * 8 * 4;
  EXPECT_NEAR(summing_seconds(8, "f32", "sum"), 8 * 4 + 8 * 2 * 4 + added, 1e-6);
  EXPECT_NEAR(summing_seconds(8, "f32", "mean"), 8 * 4 + 8 * 2 * 4 + added + 8 * (4 + 4), 1e-6);
  EXPECT_NEAR(summing_seconds(8, "bf16", "sum"), 8 * 2 + 8 * 2 * 2 + added + 8 * (4 + 2), 1e-6);
}

TEST(Seconds, CountASumThatLeavesTheCacheWhenItIsAddedTo) {
  constexpr std::int64_t small = (1 << 18) - 1;
  constexpr std::int64_t large = 1 << 18;
  const auto computing = [](double results) { return results * 4 + results * 2 * 4; };
  EXPECT_NEAR(summing_seconds(small, "f32", "sum"), computing(small) + 3.0 * small * 4, 1e-3);
  EXPECT_NEAR(summing_seconds(large, "f32", "sum"), computing(large) + 3 * 3.0 * large * 4, 1e-3);
  Machine machine = only_memory();
  machine.processor.second_cache *= 2;
  EXPECT_NEAR(summing_seconds(large, "f32", "sum", machine), computing(large) + 3.0 * large * 4, 1e-3);
}

/// How long one vertex computes, cut for so many sites of which two share a node.
double computing_on(std::int64_t sites, Machine machine) {
  machine.sites_per_node = 2;
  machine.task_seconds = 0;
  machine.network_latency = 0;
  machine.network_bandwidth = 1e30;
  const EinGraph graph = einrel::graph_of("dims i=64\ninput X[i]\nA[i] = X[i] + 1\noutput A\n");
  const Plan plan{"test", 4, {one_part_per_site({1}), one_part_per_site({sites})}};
  return costs_of(graph, plan, machine).seconds;
}

TEST(Seconds, AreFewerWhereOthersOfANodeWait) {
  Machine memory;  // bound
  memory.memory_bandwidth = 2 * 64 * 4;
  memory.memory_alone = 1.25;
  EXPECT_NEAR(computing_on(1, memory), 1 / 1.25, 1e-6);
  EXPECT_NEAR(computing_on(2, memory), 1 / 2., 1e-6);
  EXPECT_NEAR(computing_on(4, memory), 1 / 4., 1e-6);
  memory.memory_alone = 3;  // more than two share
  EXPECT_NEAR(computing_on(1, memory), 1 / 2., 1e-6);
  Machine flops;
  flops.processor.flops_per_core = 64;
  flops.flops_alone = 1.5;
  EXPECT_NEAR(computing_on(1, flops), 1 / 1.5, 1e-6);
  EXPECT_NEAR(computing_on(2, flops), 1 / 2., 1e-6);
}

/// How long a program of a sum S takes, moving its operand or its partial results, on four sites of which as many as
/// are said share a node.
double moving_on(std::int64_t sites_per_node, const std::vector<PartitionVector>& grids) {
  OnSites planned =
      on_four_sites("dims i=8 j=8\ninput X[i,j]\nA[i,j] = X[i,j] + 1\nS[j] = sum[i] A[i,j]\noutput S\n", grids);
  Machine machine;
  machine.memory_bandwidth = machine.processor.flops_per_core = 1e30;
  machine.task_seconds = machine.network_latency = 0;
  machine.network_bandwidth = 1;
  machine.sites_per_node = sites_per_node;
  if (sites_per_node > 1) machine.network_alone = 3;
  const double all = costs_of(planned.graph, planned.plan, machine).seconds;
  const auto model = cost_model(CostKind::seconds, machine);  // before sites have numbers
  const Vertex& a = planned.graph.vertices[1];
  const VertexPlan& last = planned.plan.vertices[2];
  const double estimate = model->of_vertex(planned.graph, 2, last) +
                          model->of_moves(a, {result_layout(a, planned.plan.vertices[1])},
                                          {needed_layout(planned.graph.vertices[2], 0, a.bound, last)})[0];
  EXPECT_NEAR(estimate, all, 1e-6);
  return all;
}

TEST(Seconds, AreFewerWhereOthersOfANodeReceiveNothing) {
  const std::vector<PartitionVector> to_all{{4, 1}, {4, 1}, {4, 1}};   // of A's 64 elements 12 to each
  const std::vector<PartitionVector> partial{{4, 1}, {4, 1}, {1, 4}};  // three sites' 8 sums to one
  const double bytes = 4;
  EXPECT_NEAR(moving_on(1, to_all), 12 * bytes, 1e-6);
  EXPECT_NEAR(moving_on(4, to_all), 12 * bytes, 1e-6);
  EXPECT_NEAR(moving_on(1, partial), 24 * bytes, 1e-6);
  EXPECT_NEAR(moving_on(4, partial), 24 * bytes / 3, 1e-6);
  EXPECT_NEAR(moving_on(2, partial), 24 * bytes / 2, 1e-6);  // no more than two share
}

TEST(Seconds, AreFewerWhereThoseThatReceiveAreOnSeveralNodes) {
  OnSites planned =
      on_four_sites("dims i=8\ninput X[i]\nA[i] = X[i] + 1\nB[i] = A[i] * 2\noutput B\n", {{2}, {2}, {4}});
  for (const std::size_t v : {0U, 1U})
    planned.plan.vertices[v].strides = {2};  // sites 0 and 2, from which 1 and 3 receive
  Machine machine = only_memory();
  machine.memory_bandwidth = 1e30;
  machine.network_bandwidth = 1;
  machine.sites_per_node = 2;
  machine.network_alone = 1.5;
  EXPECT_NEAR(costs_of(planned.graph, planned.plan, machine).vertices.back().moving, 2 * 4 / 1.5, 1e-6);
}

TEST(Seconds, OfAMoveAreAtMostThoseOfMisplacing) {
  constexpr std::int64_t sites = 6;
  const EinGraph graph = einrel::graph_of(
      "dims i=7 j=12 k=30\ninput X[i,j], Y[j,k]\nA[i,j] = X[i,j] + 1\nB[i,k] = sum[j] A[i,j] * Y[j,k]\noutput B\n");
  Machine machine = only_memory();
  machine.network_latency = 1;
  machine.network_bandwidth = 1;
  machine.sites_per_node = 3;
  machine.network_alone = 2;
  const auto model = cost_model(CostKind::seconds, machine);
  const Candidates candidates = site_candidates(graph, sites, {}, CostKind::seconds);
  std::vector<Layout> have;
  for (const VertexPlan& plan : candidates(graph.vertices[2], 2))
    have.push_back(result_layout(graph.vertices[2], plan));
  std::vector<Layout> need;
  for (const VertexPlan& plan : candidates(graph.vertices[3], 3))
    need.push_back(needed_layout(graph.vertices[3], 0, graph.vertices[2].bound, plan));
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
