#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "einsum/reference.h"
#include "support/compare.h"
#include "support/program.h"
#include "tra/infer.h"
#include "tra/interpret.h"
#include "tra/text/parse.h"
#include "tra/text/print.h"

// The programs of the TRA paper, read from text and compared with the same computation as an EinSum program.
// docs/algebra.md says where they differ from the paper's text.

namespace einrel::test {
namespace {

using testing::ElementsAre;

TraExpr program_of(const std::string& text) { return parse_tra(SourceText("paper.tra", text)).program; }

/// Small whole numbers in f64, so that sums are exact in any order.
Tensor numbers(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  const Shape bound = make_shape(shape);
  std::vector<double> values;
  std::uint64_t state = seed * 2 + 1;
  for (std::int64_t i = 0; i < element_count(bound); ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    values.push_back(static_cast<double>(state >> 60U) - 8);
  }
  return tensor_of(DType::f64, bound, values);
}

/// The one output of a program in the language of EinSums.
Tensor reference(const std::string& text, const TensorBindings& inputs, const std::string& name) {
  const EinGraph graph = graph_of(text);
  const std::vector<Tensor> outputs = evaluate_reference(graph, inputs, {});
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (graph[graph.outputs[i]].name == name) return outputs[i];
  }
  ADD_FAILURE() << "no output " << name;
  return Tensor();
}

testing::AssertionResult equal(const Tensor& got, const Tensor& want) {
  return agree(got, want, std::vector<double>(static_cast<std::size_t>(want.count()), 0));
}

constexpr const char* a_and_b = R"(
input A[4,4] : f64 cut <2,2>
input B[2,8] : f64 cut <1: 2>
)";
const TensorBindings matrices{
    {"A", tensor_of(DType::f64, make_shape({4, 4}), {1, 2, 5, 6, 3, 4, 7, 8, 9, 10, 13, 14, 11, 12, 15, 16})},
    {"B", tensor_of(DType::f64, make_shape({2, 8}), {1, 2, 5, 6, 9, 10, 13, 14, 3, 4, 7, 8, 11, 12, 15, 16})}};

std::map<Key, std::vector<double>> result(const std::string& statements) {
  const TraExpr program = program_of(a_and_b + statements + "\noutput R\n");
  std::map<Key, std::vector<double>> values;
  const Relation relation = interpret(program, matrices, {}).at("R");
  for (const auto& [key, array] : relation) values[key] = values_of(array);
  return values;
}

using Tuples = std::map<Key, std::vector<double>>;

TEST(PaperExamples, AggregateSumsTheChunksOfAColumn) {
  EXPECT_EQ(result("R = aggregate(<1>, matAdd)(A)"), (Tuples{{{0}, {10, 12, 14, 16}}, {{1}, {18, 20, 22, 24}}}));
}

TEST(PaperExamples, AggregateOverEverythingLeavesOneTuple) {
  EXPECT_EQ(result("R = aggregate(<>, matAdd)(A)"), (Tuples{{{}, {28, 32, 36, 40}}}));
}

TEST(PaperExamples, JoinMultipliesChunksAndDropsTheRedundantPosition) {
  const Tuples tuples = result("R = join(<1>, <0>, matMul)(A, A)");
  EXPECT_EQ(tuples.size(), 8U);
  EXPECT_THAT(tuples.at({0, 1, 0}), ElementsAre(111, 122, 151, 166));
}

TEST(PaperExamples, TileCountsTilesInANewLastPosition) {
  EXPECT_EQ(
      result("R = tile(1, 2)(B)"),
      (Tuples{{{0, 0}, {1, 2, 3, 4}}, {{0, 1}, {5, 6, 7, 8}}, {{1, 0}, {9, 10, 11, 12}}, {{1, 1}, {13, 14, 15, 16}}}));
}

TEST(PaperExamples, ReKeyMakesTheTilesAMatrixAgain) {
  EXPECT_EQ(result("R = rekey(<k0,k1> -> <2*k0 + k1>)(tile(1, 2)(B))"),
            (Tuples{{{0}, {1, 2, 3, 4}}, {{1}, {5, 6, 7, 8}}, {{2}, {9, 10, 11, 12}}, {{3}, {13, 14, 15, 16}}}));
}

TEST(PaperExamples, ConcatUndoesATile) {
  EXPECT_EQ(result("R = concat(1, 1)(tile(1, 2)(B))"),
            (Tuples{{{0}, {1, 2, 5, 6, 3, 4, 7, 8}}, {{1}, {9, 10, 13, 14, 11, 12, 15, 16}}}));
}

TEST(PaperExamples, ADiagonalIsFilterReKeyAndTransform) {
  EXPECT_EQ(result("R = transform(diag)(rekey(<k0,k1> -> <k0>)(filter(k0 == k1)(A)))"),
            (Tuples{{{0}, {1, 4}}, {{1}, {13, 16}}}));
}

/// Parts of the dimensions of a program. What they cut does not divide evenly, unless said.
struct Parts {
  std::int64_t i, j, k;
};

TEST(PaperPrograms, MatrixMultiplication) {
  const TensorBindings inputs{{"A", numbers({5, 7}, 1)}, {"B", numbers({7, 4}, 2)}};
  const Tensor want =
      reference("dims i=5, j=7, k=4\ninput A[i,j], B[j,k] : f64\nC[i,k] = sum[j] A[i,j] * B[j,k]", inputs, "C");
  for (const Parts& parts : {Parts{1, 1, 1}, Parts{2, 3, 1}, Parts{3, 2, 4}, Parts{5, 7, 4}}) {
    const TraExpr program = program_of(fmt::format(R"(
      input A[5,7] : f64 cut <{},{}>
      input B[7,4] : f64 cut <{},{}>
      C = aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(A, B))
    )",
                                                   parts.i, parts.j, parts.j, parts.k));
    EXPECT_TRUE(equal(assemble(interpret(program, inputs, {}).at("C"), DType::f64, 2), want));
  }
}

constexpr const char* nearest_neighbour = R"(
  dims n=7, a=6, b=6, q=1
  input Q[q,a], X[n,a], A[a,b] : f64
  diff[n,a] = Q[0,a] - X[n,a]
  proj[n,b] = sum[a] diff[n,a] * A[a,b]
  dist[n] = sum[b] proj[n,b] * diff[n,b]
  least[] = min[n] dist[n]
  index[] = argmin[n] dist[n]
)";

TEST(PaperPrograms, NearestNeighbourSearch) {
  const TensorBindings inputs{{"Q", numbers({1, 6}, 3)}, {"X", numbers({7, 6}, 4)}, {"A", numbers({6, 6}, 5)}};
  const double least = values_of(reference(nearest_neighbour, inputs, "least"))[0];
  const double index = values_of(reference(nearest_neighbour, inputs, "index"))[0];
  for (const auto& [rows, columns] :
       {std::pair(1, 1), std::pair(3, 1), std::pair(1, 2), std::pair(4, 3), std::pair(7, 6)}) {
    const TraExpr program = program_of(fmt::format(R"(
      input Q[1,6] : f64 cut <1,{1}>
      input X[7,6] : f64 cut <{0},{1}>
      input A[6,6] : f64 cut <{1},{1}>
      diff = rekey(<q,d,n> -> <n,d>)(join(<1>, <1>, matVecSub)(Q, X))
      proj = aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(diff, A))
      dist = transform(rowSum)(aggregate(<0>, matAdd)(join(<0,1>, <0,1>, elemMul)(proj, diff)))
      nearest = aggregate(<>, minIndex)(join(<0>, <0>, minPair)(dist, positions(7, <{0}>)))
    )",
                                                   rows, columns));
    EXPECT_THAT(values_of(interpret(program, inputs, {}).at("nearest").at({})), ElementsAre(least, index));
  }
}

// Chunks of unequal columns cannot be added; their row sums can (rule R1-4).
TEST(PaperPrograms, NearestNeighbourSearchOverUnevenColumns) {
  const TensorBindings inputs{{"Q", numbers({1, 6}, 3)}, {"X", numbers({7, 6}, 4)}, {"A", numbers({6, 6}, 5)}};
  const double least = values_of(reference(nearest_neighbour, inputs, "least"))[0];
  const double index = values_of(reference(nearest_neighbour, inputs, "index"))[0];
  const TraExpr program = program_of(R"(
    input Q[1,6] : f64 cut <1: 4>
    input X[7,6] : f64 cut <2,4>
    input A[6,6] : f64 cut <4,4>
    diff = rekey(<d,n> -> <n,d>)(join(<0>, <1>, matVecSub)(Q, X))
    proj = aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(diff, A))
    dist = aggregate(<0>, matAdd)(transform(rowSum)(join(<0,1>, <0,1>, elemMul)(proj, diff)))
    nearest = aggregate(<>, minIndex)(join(<0>, <0>, minPair)(dist, positions(7, <2>)))
  )");
  EXPECT_THAT(values_of(interpret(program, inputs, {}).at("nearest").at({})), ElementsAre(least, index));
}

TEST(PaperPrograms, DiagonalOfASum) {
  const TensorBindings inputs{{"X", numbers({7, 7}, 6)}, {"Y", numbers({7, 7}, 7)}};
  const Tensor want = reference("dims i=7, j=7\ninput X[i,j], Y[i,j] : f64\nZ[k] = X[k,k] + Y[k,k]", inputs, "Z");
  for (const int parts : {1, 2, 3, 7}) {
    const TraExpr program = program_of(fmt::format(R"(
      input X[7,7] : f64 cut <{0},{0}>
      input Y[7,7] : f64 cut <{0},{0}>
      Z = transform(diag)(rekey(<k0,k1> -> <k0>)(filter(k0 == k1)(join(<0,1>, <0,1>, matAdd)(X, Y))))
      DX = rekey(<k0,k1> -> <k0>)(filter(k0 == k1)(X))
      DY = rekey(<k0,k1> -> <k0>)(filter(k0 == k1)(Y))
      W = join(<0>, <0>, diag . matAdd)(DX, DY)
    )",
                                                   parts));
    const auto results = interpret(program, inputs, {});
    EXPECT_TRUE(equal(assemble(results.at("Z"), DType::f64, 1), want));
    EXPECT_TRUE(equal(assemble(results.at("W"), DType::f64, 1), want));
  }
}

TEST(PaperPrograms, OneStepOfATwoLayerNetwork) {
  const TensorBindings inputs{
      {"X", numbers({6, 5}, 8)}, {"Y", numbers({6, 3}, 9)}, {"W1", numbers({5, 7}, 10)}, {"W2", numbers({7, 3}, 11)}};
  constexpr const char* einsums = R"(
    dims n=6, d=5, h=7, l=3
    input X[n,d], Y[n,l], W1[d,h], W2[h,l] : f64
    a1[n,h] = relu(sum[d] X[n,d] * W1[d,h])
    a2[n,l] = sigmoid(sum[h] a1[n,h] * W2[h,l])
    da2[n,l] = a2[n,l] - Y[n,l]
    da1[n,h] = sum[l] da2[n,l] * W2[h,l]
    V1[d,h] = W1[d,h] - 0.125 * sum[n] X[n,d] * (step(a1[n,h]) * da1[n,h])
    V2[h,l] = W2[h,l] - 0.125 * sum[n] a1[n,h] * da2[n,l]
  )";
  for (const auto& [n, d, h, l] : {std::tuple(1, 1, 1, 1), std::tuple(4, 2, 3, 2), std::tuple(6, 5, 7, 3)}) {
    const TraExpr program = program_of(fmt::format(R"(
      scalar eta = 0.125
      kernel scaleMul(A[i,j]) -> [i,j] = eta * A[i,j]
      input X[6,5] : f64 cut <{0},{1}>
      input Y[6,3] : f64 cut <{0},{3}>
      input W1[5,7] : f64 cut <{1},{2}>
      input W2[7,3] : f64 cut <{2},{3}>
      a1 = transform(relu)(aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(X, W1)))
      a2 = transform(sigmoid)(aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(a1, W2)))
      da2 = join(<0,1>, <0,1>, matSub)(a2, Y)
      dW2 = aggregate(<1,2>, matAdd)(join(<0>, <0>, matTranMulL)(a1, da2))
      da1a = aggregate(<0,2>, matAdd)(join(<1>, <1>, matTranMulR)(da2, W2))
      da1b = join(<0,1>, <0,1>, elemMul)(transform(step)(a1), da1a)
      dW1 = aggregate(<1,2>, matAdd)(join(<0>, <0>, matTranMulL)(X, da1b))
      V2 = join(<0,1>, <0,1>, matSub)(W2, transform(scaleMul)(dW2))
      V1 = join(<0,1>, <0,1>, matSub)(W1, transform(scaleMul)(dW1))
    )",
                                                   n, d, h, l));
    const auto results = interpret(program, inputs, {{"eta", 0.125}});
    EXPECT_EQ(results.size(), 2U) << "V1 and V2";
    for (const char* name : {"V1", "V2"}) {
      const Tensor want = reference(einsums, inputs, name);
      EXPECT_TRUE(agree(assemble(results.at(name), DType::f64, 2), want,
                        std::vector<double>(static_cast<std::size_t>(want.count()), 1e-11)))
          << name;
    }
  }
}

}  // namespace
}  // namespace einrel::test
