#include "plan/planners/eindecomp.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "plan/cost/bound_cost.h"
#include "random_product.h"
#include "support/program.h"
#include "support/random_einsum.h"

namespace einrel::test {
namespace {

std::vector<std::vector<PartitionVector>> candidates_of(const EinGraph& graph, std::int64_t calls) {
  std::vector<std::vector<PartitionVector>> candidates;
  for (const Vertex& vertex : graph.vertices) {
    const bool is_input = std::holds_alternative<Input>(vertex.op);
    candidates.push_back(is_input ? std::vector<PartitionVector>{PartitionVector(vertex.bound.size(), 1)}
                                  : power_of_two_partitions(most_parts(vertex, graph), calls));
  }
  return candidates;
}

/// The least cost of all plans there are.
double brute_force(const EinGraph& graph, std::int64_t calls) {
  const auto candidates = candidates_of(graph, calls);
  std::vector<std::size_t> at(candidates.size(), 0);
  double least = std::numeric_limits<double>::infinity();
  for (;;) {
    std::vector<PartitionVector> parts;
    for (std::size_t v = 0; v < at.size(); ++v) parts.push_back(candidates[v][at[v]]);
    least = std::min(least, bound_of_plan(graph, parts));
    std::size_t v = 0;
    while (v < at.size() && ++at[v] == candidates[v].size()) at[v++] = 0;
    if (v == at.size()) return least;
  }
}

TEST(Bound, IsThatOfThePapersRepartition) {
  // 8 chunks of 8 floats, wanted as 4 of 16, which share 4: 4 * 3 * 16 + 16 * 8.
  EXPECT_EQ(bound_of_repartition(make_shape({8, 8}), {4, 2}, {1, 4}), 320);
  EXPECT_EQ(bound_of_repartition(make_shape({8, 8}), {4, 2}, {4, 2}), 0);
  // Whole chunks of the producer are put together: nothing is cut.
  EXPECT_EQ(bound_of_repartition(make_shape({8, 8}), {4, 2}, {2, 2}), 4 * 1 * 16);
}

TEST(Bound, IsThatOfThePapersMatrixMultiplies) {
  const EinGraph graph = einrel::graph_of("dims i=8 j=8 k=8\ninput X[i,j], Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n");
  const Vertex& z = graph.vertices.back();
  EXPECT_EQ(bound_of_vertex(z, graph, {4, 4, 1}), 16 * (16 + 16));
  // i in 2 parts, k in 4, j in 2: 8 groups of 2 products.
  const double join = 16 * (8 * 8 / 4.0 + 8 * 8 / 8.0);
  EXPECT_EQ(bound_of_vertex(z, graph, {2, 4, 2}), join + 8 * 1 * (8 * 8 / 8.0));
}

TEST(Partitions, AreAsManyAsThePaperCounts) {
  EXPECT_EQ(power_of_two_partitions(PartitionVector(6, 1 << 20), 1 << 10).size(), 3003U);
  EXPECT_EQ(power_of_two_partitions({8, 8, 8}, 8).size(), 10U);
  EXPECT_EQ(power_of_two_partitions({1, 3, 100}, 8), (std::vector<PartitionVector>{{1, 1, 8}, {1, 2, 4}}));
  // No label is long enough: the most that there is.
  EXPECT_EQ(power_of_two_partitions({2, 3}, 16), (std::vector<PartitionVector>{{2, 2}}));
  EXPECT_EQ(power_of_two_partitions({}, 16), (std::vector<PartitionVector>{{}}));
}

/// Trees of products, sums and element-wise functions of matrices, each vertex read once.
std::string random_tree(Random& random) {
  static const std::array<std::string, 4> labels{"a", "b", "c", "d"};
  std::string text = "dims a=8 b=4 c=16 d=6\n";
  std::vector<std::pair<std::string, std::string>> open;  // name and labels of what nobody reads yet
  const std::int64_t vertices = random.between(1, 5);
  int inputs = 0;
  const auto tensor = [&]() -> std::pair<std::string, std::string> {
    if (!open.empty() && random.chance(0.7)) {
      const auto taken = open.back();
      open.pop_back();
      return taken;
    }
    const std::string name = "I" + std::to_string(inputs++);
    std::string first = random.one_of(labels);
    std::string second = random.one_of(labels);
    while (second == first) second = random.one_of(labels);
    text += "input " + name + "[" + first + "," + second + "]\n";
    return {name, first + second};
  };
  for (std::int64_t v = 0; v < vertices; ++v) {
    const Named x = tensor();
    const Named y = tensor();
    auto [statement, made] = random_product(random, "V" + std::to_string(v), x, y, 0.6);
    text += statement;
    open.push_back(std::move(made));
  }
  return text;
}

TEST(EinDecomp, FindsTheOptimumOfEveryTree) {
  int larger = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    Random random(seed);
    const std::string text = random_tree(random);
    const EinGraph graph = einrel::graph_of(text);
    const std::int64_t calls = random.one_of(std::array<std::int64_t, 3>{2, 4, 8});
    double space = 1;
    for (const auto& candidates : candidates_of(graph, calls)) space *= static_cast<double>(candidates.size());
    if (space > 3e4) continue;
    ++larger;
    const double cost = costs_of(graph, eindecomp_paper(graph, calls), {}).bound;
    ASSERT_DOUBLE_EQ(cost, brute_force(graph, calls)) << "seed " << seed << "\n" << text;
  }
  EXPECT_GE(larger, 500);
}

/// By rows and by columns cost the same; parts along rows lie in one stretch of memory.
TEST(EinDecomp, CutsFirstLabelsWhereOthersCostTheSame) {
  const EinGraph graph =
      einrel::graph_of("dims i=3500 j=500 k=3500\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\n");
  const PartitionVector rows{2, 1, 1};
  const PartitionVector columns{1, 2, 1};
  ASSERT_EQ(label_extents(graph.vertices.back()), make_shape({3500, 3500, 500}));
  EXPECT_EQ(bound_of_vertex(graph.vertices.back(), graph, rows),
            bound_of_vertex(graph.vertices.back(), graph, columns));
  EXPECT_EQ(eindecomp_paper(graph, 2).vertices.back().grid, rows);
  for (const CostKind kind : {CostKind::floats, CostKind::bytes, CostKind::seconds}) {
    EXPECT_EQ(eindecomp(graph, 2, {}, kind, {}).vertices.back().grid, rows);
  }
}

}  // namespace
}  // namespace einrel::test
