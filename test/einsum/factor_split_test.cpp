#include "einsum/passes/factor_split.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/passes/contraction_order.h"
#include "einsum/reference.h"
#include "support/program.h"
#include "support/random_integers.h"
#include "support/rounds.h"
#include "tensor/convert.h"

namespace einrel {
namespace {

/// As compile does.
EinGraph rewritten(const EinGraph& graph) {
  std::vector<OrderedContraction> report;
  EinGraph result = split_factors(order_contractions(graph, report));
  verify(result);
  return result;
}

/// The formulas of all that is computed.
std::vector<std::string> split_formulas(const std::string& text) {
  const EinGraph graph = rewritten(graph_of(text));
  std::vector<std::string> all;
  for (const Vertex& vertex : graph.vertices) {
    if (!is_input(vertex)) all.push_back(formula(vertex, graph));
  }
  return all;
}

using Formulas = std::vector<std::string>;
const std::string square = "dims i=64 j=64 k=64\ninput A[i,j], B[j,k], N[j], R[i]\ninput M[i,j] : i32\nscalar c = 2\n";

TEST(FactorSplit, MakesATensorOfAFactorThatIsComputed) {
  EXPECT_EQ(split_formulas(square + "Z[i,k] = sum[j] relu(A[i,j]) * B[j,k]\n"),
            (Formulas{"Z_1[i,j] = relu(A[i,j])", "Z[i,k] = sum[j] Z_1[i,j] * B[j,k]"}));
  EXPECT_EQ(split_formulas(square + "Z[i,k] = mean[j] A[i,j] * exp(B[j,k])\n"),
            (Formulas{"Z_1[j,k] = exp(B[j,k])", "Z[i,k] = mean[j] A[i,j] * Z_1[j,k]"}));
  EXPECT_EQ(split_formulas(square + "Z[i,k] = max[j] (relu(A[i,j]) + B[j,k])\n"),
            (Formulas{"Z_1[i,j] = relu(A[i,j])", "Z[i,k] = max[j] (Z_1[i,j] + B[j,k])"}));
  EXPECT_EQ(split_formulas(square + "Z[i,k] = sum[j] sq(relu(A[i,j]) - B[j,k])\n"),
            (Formulas{"Z_1[i,j] = relu(A[i,j])", "Z[i,k] = sum[j] sq(Z_1[i,j] - B[j,k])"}));
  EXPECT_EQ(split_formulas(square + "Z[i,k] = min[j] (A[i,j] - B[j,k])\n"),
            (Formulas{"Z_1[j,k] = -B[j,k]", "Z[i,k] = min[j] (A[i,j] + Z_1[j,k])"}));
}

TEST(FactorSplit, KeepsTheNarrowTypeOfMasksAndOneHots) {
  EXPECT_EQ(split_formulas(square + "Z[i,k] = sum[j] f32(M[i,j] > 0) * B[j,k]\n"),
            (Formulas{"Z_1[i,j] = M[i,j] > 0", "Z[i,k] = sum[j] f32(Z_1[i,j]) * B[j,k]"}));
  EXPECT_EQ(split_formulas(
                "dims b=32 v=200 d=16\ninput T[b] : i32\ninput W[v,d] : f64\nE[b,d] = sum[v] (T[b] == v) * W[v,d]\n"),
            (Formulas{"E_1[b,v] = T[b] == v", "E[b,d] = sum[v] f64(E_1[b,v]) * W[v,d]"}));
}

TEST(FactorSplit, MovesDivisionsToWhereFewestAreNeeded) {
  EXPECT_EQ(split_formulas(square + "Z[i,k] = sum[j] A[i,j] * B[j,k] / 3\n"),
            (Formulas{"Z_1[i,j] = A[i,j] / 3", "Z[i,k] = sum[j] Z_1[i,j] * B[j,k]"}));
  EXPECT_EQ(split_formulas(square + "Z[i,k] = sum[j] A[i,j] * B[j,k] / N[j]\n"),
            (Formulas{"Z_1[i,j] = A[i,j] / N[j]", "Z[i,k] = sum[j] Z_1[i,j] * B[j,k]"}));
  EXPECT_EQ(split_formulas("dims i=64 j=512 k=8\ninput A[i,j], B[j,k], R[i]\nZ[i,k] = sum[j] A[i,j] * B[j,k] / R[i]\n"),
            (Formulas{"Z_1[i,k] = sum[j] A[i,j] * B[j,k]", "Z[i,k] = Z_1[i,k] / R[i]"}));
  EXPECT_EQ(split_formulas(square + "Z[i,k] = max[j] A[i,j] * B[j,k] / 3\n"),
            (Formulas{"Z_1[i,k] = max[j] A[i,j] * B[j,k]", "Z[i,k] = Z_1[i,k] / 3"}));
}

TEST(FactorSplit, AppliesToTheResultWhatAllValuesGoThroughAlike) {
  EXPECT_EQ(split_formulas(square + "Z[i,k] = sum[j] sq(A[i,j] - B[j,k]) / 8\n"),
            (Formulas{"Z_1[i,k] = sum[j] sq(A[i,j] - B[j,k])", "Z[i,k] = Z_1[i,k] / 8"}));
  EXPECT_EQ(split_formulas(square + "Z[i,k] = mean[j] R[i] * abs(A[i,j] - B[j,k]) / R[k]\n"),
            (Formulas{"Z_1[i,k] = mean[j] abs(A[i,j] - B[j,k])", "Z[i,k] = Z_1[i,k] * (R[i] / R[k])"}));
  EXPECT_EQ(split_formulas(square + "Z[i,k] = sum[j] max(relu(A[i,j]), B[j,k]) * -3\n"),
            (Formulas{"Z_1[i,j] = relu(A[i,j])", "Z[i,k] = sum[j] max(Z_1[i,j], B[j,k]) * -3"}));
  EXPECT_EQ(split_formulas(square + "Z[i,k] = max[j] A[i,j] * B[j,k] * -3\n"),
            (Formulas{"Z_1[i,k] = min[j] A[i,j] * B[j,k]", "Z[i,k] = Z_1[i,k] * -3"}));
  EXPECT_EQ(split_formulas(square + "Z[i,k] = min[j] (1 - abs(A[i,j] - B[j,k]))\n"),
            (Formulas{"Z_1[i,k] = max[j] abs(A[i,j] - B[j,k])", "Z[i,k] = -Z_1[i,k] + 1"}));
}

TEST(FactorSplit, OrdersMeansOfSeveralFactors) {
  EXPECT_EQ(split_formulas(square + "Z[i,k] = mean[j] A[i,j] * B[j,k] * N[j]\n"),
            (Formulas{"Z_1[i,j] = A[i,j] * N[j]", "Z_2[i,k] = sum[j] Z_1[i,j] * B[j,k]", "Z[i,k] = Z_2[i,k] / 64"}));
}

TEST(FactorSplit, MapsWhatWindowsReadOnceForEachElement) {
  const std::string text = "dims n=40 c=16 k=16 x=3\ninput X[c,n], W[k,c,x]\n";
  EXPECT_EQ(split_formulas(text + "Z[k,p] = sum[c,x] relu(X[c,p+x]) * W[k,c,x]\n"),
            (Formulas{"Z_1[c,i1] = relu(X[c,i1])", "Z[k,p] = sum[c,x] Z_1[c,p+x] * W[k,c,x]"}));
  EXPECT_EQ(split_formulas("dims n=40 p=40 c=16 k=16 x=3\ninput X[c,n], W[k,c,x]\n"
                           "Z[k,p] = sum[c,x] exp(pad(X[c,p+x-1], 0)) * W[k,c,x]\n"),
            (Formulas{"Z_1[c,i1] = exp(X[c,i1])", "Z[k,p] = sum[c,x] pad(Z_1[c,p+x-1], 1) * W[k,c,x]"}));
}

TEST(FactorSplit, LeavesAloneWhatGainsNothing) {
  const auto is_kept = [](const std::string& text) { return split_formulas(text).size() == 1; };
  EXPECT_TRUE(is_kept(square + "Z[i,k] = sum[j] A[i,j] * B[j,k]\n"));
  EXPECT_TRUE(is_kept("dims i=400 j=400\ninput A[i,j], x[j]\nZ[i] = sum[j] relu(A[i,j]) * x[j]\n"));        // as large
  EXPECT_TRUE(is_kept("dims i=4 j=4 k=4\ninput A[i,j], B[j,k]\nZ[i,k] = sum[j] relu(A[i,j]) * B[j,k]\n"));  // tiny
  EXPECT_TRUE(is_kept(square + "Z[i,k] = max[j] A[i,j] * B[j,k] * c\n"));       // if c is negative, the smallest counts
  EXPECT_TRUE(is_kept(square + "Z[i,k] = max[j] A[i,j] * B[j,k] * 0\n"));       // NaN where one of all is infinite
  EXPECT_TRUE(is_kept(square + "Z[i,k] = sum[j] sq(A[i,j] - B[j,k]) * -c\n"));  // kernels do that
  EXPECT_TRUE(is_kept(square + "Z[i,k] = prod[j] relu(A[i,j]) * B[j,k]\n"));
  // The product wraps around in i32 before it is converted.
  EXPECT_TRUE(is_kept("dims i=64 j=64 k=64\ninput A[i,j], B[j,k] : i32\nZ[i,k] = sum[j] f64(A[i,j] * B[j,k])\n"));
  // 8 GB beside 24 MB.
  EXPECT_TRUE(
      is_kept("dims b=250000 v=32000 d=8\ninput T[b] : i32\ninput W[v,d]\nE[b,d] = sum[v] (T[b] == v) * W[v,d]\n"));
}

/// A random factor of small integers over two labels, exact in any order of computing.
std::string random_factor(std::mt19937& random, const std::string& x) {
  const std::array<std::string, 9> forms{x,
                                         "relu(" + x + ")",
                                         "abs(" + x + ")",
                                         "-" + x,
                                         "(" + x + " + 1)",
                                         "f64(" + x + " > 0)",
                                         "where(" + x + " > 1, 2, " + x + ")",
                                         "f32(" + x + " == j)",
                                         "max(" + x + ", 0)"};
  return forms.at(random() % forms.size());
}

/// Integers; those of P, by which bodies divide, are powers of two.
TensorBindings random_operands(const EinGraph& graph, std::mt19937& random) {
  TensorBindings inputs = test::random_integers(graph, random);
  const auto divisor = inputs.find("P");
  if (divisor == inputs.end()) return inputs;
  std::vector<double> values = values_of(divisor->second);
  for (double& value : values) value = std::exp2(value);
  divisor->second = tensor_of(divisor->second.dtype(), divisor->second.shape(), values);
  return inputs;
}

TEST(FactorSplit, KeepsTheValuesOfRandomBodies) {
  std::mt19937 random(3);
  std::size_t changed = 0;
  for (int round = 0; round < test::rounds(300); ++round) {
    const std::array<std::string, 4> types{"f32", "f64", "i32", "i64"};
    const std::array<std::string, 6> ends{"", " / 4", " / P[j]", " / P[i]", " * 2", " / (P[i] * 2)"};
    const std::string end = ends.at(random() % ends.size());
    const std::string a_type = types.at(random() % (end.starts_with(" /") ? 2U : 4U));  // integers are not divided
    const std::string b_type = end.starts_with(" /") ? "f64" : types.at(random() % 4);
    const std::string a = random_factor(random, "A[i,j]");
    const std::string b = random_factor(random, "B[j,k]");
    const std::array<std::string, 9> joins{a + " * " + b,
                                           a + " + " + b,
                                           "max(" + a + ", " + b + ")",
                                           "sq(" + a + " - " + b + ")",
                                           "abs(" + a + " - " + b + ")",
                                           "(" + a + " - " + b + ")",
                                           "(" + a + " - " + b + ")**2",
                                           a + " * " + b + " * -1",
                                           "-(" + a + " * " + b + ")"};
    const std::array<std::string, 4> reducers{"sum", "mean", "max", "min"};
    const std::string join = joins.at(random() % joins.size());
    const std::string text = "dims i=32 j=32 k=32\ninput A[i,j] : " + a_type + "\ninput B[j,k] : " + b_type +
                             "\ninput P[j] : f64\nZ[i,k] = " + reducers.at(random() % 4) + "[j] (" + join + ")" + end +
                             "\n";
    SCOPED_TRACE(text);
    const EinGraph graph = graph_of(text);
    const EinGraph split = rewritten(graph);
    changed += split.vertices.size() > graph.vertices.size() ? 1U : 0U;
    const TensorBindings inputs = random_operands(graph, random);
    const Tensor expected = evaluate_reference(graph, inputs, {}).front();
    const Tensor found = evaluate_reference(split, inputs, {}).front();
    ASSERT_EQ(found.dtype(), expected.dtype());
    ASSERT_EQ(values_of(found), values_of(expected));
  }
  // The others: two plain tensors, a maximum over divisors of unknown sign, sq(a - b) / P[j].
  EXPECT_TRUE(test::came_up(changed, 180)) << changed;
}

TEST(FactorSplit, MapsPaddingLikeElements) {
  const EinGraph graph = graph_of(
      "dims n=40 p=40 c=16 k=16 x=3\ninput X[c,n], W[k,c,x]\n"
      "Z[k,p] = sum[c,x] (relu(pad(X[c,p+x-1], -2)) + 3) * W[k,c,x]\n");
  const EinGraph split = rewritten(graph);
  EXPECT_GT(split.vertices.size(), graph.vertices.size());
  std::mt19937 random(5);
  const TensorBindings inputs = random_operands(graph, random);
  EXPECT_EQ(values_of(evaluate_reference(split, inputs, {}).front()),
            values_of(evaluate_reference(graph, inputs, {}).front()));
}

TEST(FactorSplit, KeepsNanAndInfinityOfJoins) {
  for (const std::string body : {"((A[i,j] - B[j,k]) / 3 + 1)", "-2 * max(A[i,j], B[j,k])", "(5 - A[i,j] * B[j,k])"}) {
    SCOPED_TRACE(body);
    const EinGraph graph = graph_of("dims i=32 j=32 k=32\ninput A[i,j], B[j,k]\nZ[i,k] = max[j] " + body + "\n");
    const EinGraph split = rewritten(graph);
    EXPECT_GT(split.vertices.size(), graph.vertices.size());
    std::mt19937 random(6);
    TensorBindings inputs = random_operands(graph, random);
    std::vector<double> values = values_of(inputs.at("A"));
    values[5] = std::nan("");
    values[40] = std::numeric_limits<double>::infinity();
    values[70] = -std::numeric_limits<double>::infinity();
    inputs["A"] = tensor_of(DType::f32, make_shape({32, 32}), values);
    const std::vector<double> expected = values_of(evaluate_reference(graph, inputs, {}).front());
    const std::vector<double> found = values_of(evaluate_reference(split, inputs, {}).front());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const bool are_both_nan = std::isnan(expected[i]) && std::isnan(found[i]);
      ASSERT_TRUE(are_both_nan || found[i] == expected[i]) << i << ": " << found[i] << ", want " << expected[i];
    }
  }
}

}  // namespace
}  // namespace einrel
