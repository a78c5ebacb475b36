#include "plan/refine/recompute.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "einsum/check/check.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/reference.h"
#include "support/compare.h"
#include "support/random_gradient_program.h"
#include "support/run_tasks.h"

namespace einrel::test {
namespace {

EinGraph graph_of(const std::string& text) {
  return needed_for_outputs(*parse_and_check({"recompute", text}, {}).graph);
}

double flops_of(const EinGraph& graph) {
  double all = 0;
  for (const Vertex& vertex : graph.vertices) all += flops(vertex);
  return all;
}

Tensor numbers_of(DType dtype, const Shape& bound) {
  std::vector<double> values(static_cast<std::size_t>(element_count(bound)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i + 1));
  return tensor_of(dtype, bound, values);
}

Recomputed as_it_is(const EinGraph& graph) {
  Recomputed same{graph, std::vector<std::size_t>(graph.vertices.size())};
  std::iota(same.origin.begin(), same.origin.end(), std::size_t{0});
  return same;
}

/// The outputs are the same to the bit, whatever was computed again.
void expect_same(const EinGraph& graph, const Recomputed& found) {
  TensorBindings inputs;
  for (const Vertex& vertex : graph.vertices) {
    if (is_input(vertex)) inputs[vertex.name] = numbers_of(vertex.dtype, vertex.bound);
  }
  verify(found.graph);
  const std::vector<Tensor> want = evaluate_reference(graph, inputs, {});
  const std::vector<Tensor> got = evaluate_reference(found.graph, inputs, {});
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t o = 0; o < got.size(); ++o) {
    EXPECT_TRUE(same_bits(got[o], want[o]));
    EXPECT_EQ(found.graph[found.graph.outputs[o]].name, graph[graph.outputs[o]].name);
  }
  ASSERT_EQ(found.origin.size(), found.graph.vertices.size());
  for (std::size_t v = 0; v < found.origin.size(); ++v)
    EXPECT_EQ(flops(found.graph.vertices[v]), flops(graph.vertices[found.origin[v]]));
}

/// A chain of n layers and its gradient: each layer's values are needed on the way back.
std::string layers(int count, const std::string& noise = " + 0.1 * uniform(1)") {
  std::string text = "dims b=100 h=10 k=10\ninput X[b,h], W[h,k]\nA0[b,h] = X[b,h] * 2\n";
  for (int n = 1; n <= count; ++n)
    text += fmt::format("A{0}[b,k] = tanh(sum[h] A{1}[b,h] * W[h,k]){2}\n", n, n - 1, noise);
  return text + fmt::format("loss[] = sum[b,k] sq(A{}[b,k])\ngradient G = loss wrt W\noutput loss, G\n", count);
}

/// With its gradient by each input that it depends on.
std::string with_gradients(std::string text) {
  for (const char* const input : {"A", "B", "C"}) {
    const std::string more = text + fmt::format("gradient G{0} = loss wrt {0}\n", input);
    try {
      parse_and_check({"recompute", more}, {});
      text = more;
    } catch (const ProgramError&) {  // the loss does not depend on it
    }
  }
  return text;
}

TEST(Recompute, LeavesWhatFitsAsItIs) {
  const EinGraph graph = graph_of(layers(3));
  const auto found = recompute_within(as_it_is(graph), most_kept_bytes(graph), 0);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->graph, graph);
}

TEST(Recompute, KeepsLessOfAChainForMoreOperations) {
  const EinGraph graph = in_lean_order(graph_of(layers(24))).graph;
  const std::int64_t all = most_kept_bytes(graph);
  double flops_before = flops_of(graph);
  for (const double share : {0.8, 0.6, 0.4}) {
    const auto most = static_cast<std::int64_t>(share * static_cast<double>(all));
    const auto found = recompute_within(in_lean_order(graph), most, flops_of(graph));
    ASSERT_TRUE(found) << share;
    EXPECT_LE(most_kept_bytes(found->graph), most);
    EXPECT_GT(flops_of(found->graph), flops_before);
    EXPECT_LE(flops_of(found->graph), 2 * flops_of(graph));
    flops_before = flops_of(found->graph);
    expect_same(graph, *found);
  }
}

TEST(Recompute, AddsUpGradientsAsTheyCome) {
  const EinGraph graph = graph_of(layers(24, ""));
  const Recomputed lean = in_lean_order(graph);
  EXPECT_LT(static_cast<double>(most_kept_bytes(lean.graph)), 0.7 * static_cast<double>(most_kept_bytes(graph)));
  EXPECT_EQ(flops_of(lean.graph), flops_of(graph));
  expect_same(graph, lean);
  const auto found = recompute_within(in_lean_order(graph), most_kept_bytes(lean.graph), 0);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->graph, lean.graph);
}

TEST(Recompute, GivesUpWhereThatTakesTooMuch) {
  const EinGraph graph = graph_of(layers(24));
  EXPECT_FALSE(recompute_within(in_lean_order(graph), most_kept_bytes(graph) / 2, 0.01 * flops_of(graph)));
  EXPECT_FALSE(recompute_within(in_lean_order(graph), 1, 1e30)) << "a vertex alone needs more";
}

TEST(Recompute, DropsTheCheapestPerByteFirst) {
  // P is a product, E is element-wise and as large: E is computed again.
  const EinGraph graph = graph_of(
      "dims i=40 j=40 k=40\ninput X[i,j], Y[j,k]\nP[i,k] = sum[j] X[i,j] * Y[j,k]\nE[i,k] = X[i,k] + Y[i,k]\n"
      "m[] = max[i,k] (P[i,k] * E[i,k])\nB[i,k,j] = X[i,k] * Y[j,i] * m[]\ns[] = sum[i,k,j] B[i,k,j]\n"
      "Z[i,k] = P[i,k] + E[i,k] * s[]\noutput Z\n");
  const auto found = recompute_within(in_lean_order(graph), most_kept_bytes(graph) - 40 * 40 * 4, 1e9);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->graph.vertices.size(), graph.vertices.size() + 1);
  const auto is_again = [](const Vertex& vertex) { return vertex.name == "E_again"; };
  EXPECT_EQ(std::count_if(found->graph.vertices.begin(), found->graph.vertices.end(), is_again), 1);
  expect_same(graph, *found);
}

TEST(Recompute, AnyProgramGivesTheSame) {
  int changed = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const EinGraph graph = graph_of(with_gradients(RandomGradientProgram(seed).text()));
    const std::int64_t all = most_kept_bytes(graph);
    for (const double share : {0.9, 0.7, 0.5}) {
      const auto found = recompute_within(in_lean_order(graph),
                                          static_cast<std::int64_t>(share * static_cast<double>(all)), flops_of(graph));
      if (!found) continue;
      changed += found->graph.vertices.size() > graph.vertices.size() ? 1 : 0;
      expect_same(graph, *found);
    }
  }
  EXPECT_GT(changed, 20);
}

}  // namespace
}  // namespace einrel::test
