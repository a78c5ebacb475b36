#include "einsum/passes/join_split.h"

#include <gtest/gtest.h>

#include <set>

#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/reference.h"
#include "support/compare.h"
#include "support/counted_inputs.h"
#include "support/program.h"
#include "support/wide_program.h"

namespace einrel::test {
namespace {

std::vector<std::string> formulas(const std::string& text) {
  const EinGraph graph = split_joins(einrel::graph_of(text), 2);
  std::vector<std::string> all;
  for (const Vertex& vertex : graph.vertices) {
    if (!is_input(vertex)) all.push_back(formula(vertex, graph));
  }
  return all;
}

TEST(JoinSplit, MakesAVertexOfWhatReadsTwoTensorsBesideAThird) {
  const std::string inputs = "dims i=3 j=4\ninput A[i], B[i], C[i,j]\n";
  EXPECT_EQ(formulas(inputs + "Z[i,j] = A[i] * B[i] + C[i,j]\n"),
            (std::vector<std::string>{"Z_1[i] = A[i] * B[i]", "Z[i,j] = Z_1[i] + C[i,j]"}));
  EXPECT_EQ(formulas(inputs + "Z[i] = max[j] (C[i,j] - A[i]) * exp(A[i])\n"),
            (std::vector<std::string>{"Z[i] = max[j] (C[i,j] - A[i]) * exp(A[i])"}));
  EXPECT_EQ(formulas(inputs + "Z[i,j] = where(A[i] > 0, B[i], C[i,j])\n"),
            (std::vector<std::string>{"Z[i,j] = where(A[i] > 0, B[i], C[i,j])"}));
}

TEST(JoinSplit, KeepsTogetherAsManyTensorsAsItIsTold) {
  std::string text = "dims i=3\ninput X0[i]";
  std::string body = "X0[i]";
  for (int x = 1; x < 40; ++x) {
    text += ", X" + std::to_string(x) + "[i]";
    body += " + X" + std::to_string(x) + "[i]";
  }
  const EinGraph graph = split_joins(einrel::graph_of(text + "\nZ[i] = " + body + "\n"), 32);
  ASSERT_EQ(graph.vertices.size(), 42U);
  EXPECT_EQ(graph.vertices[40].inputs.size(), 32U);
  EXPECT_EQ(graph.vertices[41].inputs.size(), 9U);
}

TEST(JoinSplit, KeepsTheValuesOfRandomVertices) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const std::string text = wide_program(random);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    const EinGraph graph = einrel::graph_of(text);
    const EinGraph split = split_joins(graph, 2);
    verify(split);
    for (const Vertex& vertex : split.vertices)
      EXPECT_LE(std::set<VertexId>(vertex.inputs.begin(), vertex.inputs.end()).size(), 3U) << vertex.name;
    const TensorBindings inputs = counted_inputs(graph);
    EXPECT_EQ(values_of(evaluate_reference(split, inputs, {}).front()),
              values_of(evaluate_reference(graph, inputs, {}).front()));
  }
}

}  // namespace
}  // namespace einrel::test
