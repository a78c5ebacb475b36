#include "tra/named_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/compare.h"
#include "tra/interpret.h"
#include "tra/written_kernel.h"

namespace einrel::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor f64(const std::vector<std::int64_t>& shape, const std::vector<double>& values) {
  return tensor_of(DType::f64, make_shape(shape), values);
}
Tensor i64(const std::vector<std::int64_t>& shape, const std::vector<double>& values) {
  return tensor_of(DType::i64, make_shape(shape), values);
}

Tensor run(const std::string& name, const std::vector<Tensor>& arguments) {
  std::vector<DType> dtypes;
  std::vector<std::size_t> ranks;
  for (const Tensor& argument : arguments) {
    dtypes.push_back(argument.dtype());
    ranks.push_back(argument.rank());
  }
  return evaluate(named_kernel(name, dtypes, ranks), arguments, {});
}

std::string refusal(const std::string& name, const std::vector<DType>& dtypes, const std::vector<std::size_t>& ranks) {
  try {
    named_kernel(name, dtypes, ranks);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

const Tensor a = f64({2, 2}, {1, 2, 3, 4});
const Tensor b = f64({2, 2}, {10, -20, 3, 5});

TEST(NamedKernels, ElementWiseOnesWork) {
  EXPECT_THAT(values_of(run("matAdd", {a, b})), ElementsAre(11, -18, 6, 9));
  EXPECT_THAT(values_of(run("add", {a, b})), ElementsAre(11, -18, 6, 9));
  EXPECT_THAT(values_of(run("matSub", {a, b})), ElementsAre(-9, 22, 0, -1));
  EXPECT_THAT(values_of(run("sub", {a, b})), ElementsAre(-9, 22, 0, -1));
  EXPECT_THAT(values_of(run("elemMul", {a, b})), ElementsAre(10, -40, 9, 20));
  EXPECT_THAT(values_of(run("mul", {a, b})), ElementsAre(10, -40, 9, 20));
  EXPECT_THAT(values_of(run("max", {a, b})), ElementsAre(10, 2, 3, 5));
  EXPECT_THAT(values_of(run("min", {a, b})), ElementsAre(1, -20, 3, 4));
}

TEST(NamedKernels, ElementWiseOnesTakeArraysOfAnyRank) {
  EXPECT_THAT(values_of(run("matAdd", {f64({}, {1}), f64({}, {2})})), ElementsAre(3));
  const Tensor cube = f64({1, 2, 1}, {1, 2});
  EXPECT_THAT(values_of(run("matAdd", {cube, cube})), ElementsAre(2, 4));
  const std::vector<std::int64_t> many(24, 1);
  const Tensor deep = f64(many, {5});
  EXPECT_EQ(run("elemMul", {deep, deep}).rank(), 24U);
}

TEST(NamedKernels, LogAddExpIsExactAtInfinities) {
  const Tensor x = f64({6}, {0, 1000, -infinity, -infinity, infinity, infinity});
  const Tensor y = f64({6}, {0, 1001, -infinity, 3, infinity, -infinity});
  const std::vector<double> z = values_of(run("logAddExp", {x, y}));
  EXPECT_DOUBLE_EQ(z[0], std::log(2.0));
  EXPECT_DOUBLE_EQ(z[1], 1001 + std::log1p(std::exp(-1.0)));
  EXPECT_EQ(z[2], -infinity);
  EXPECT_EQ(z[3], 3);
  EXPECT_EQ(z[4], infinity);
  EXPECT_EQ(z[5], infinity);
}

TEST(NamedKernels, MatrixProductsWork) {
  // [[1,2],[3,4]] [[10,-20],[3,5]]
  EXPECT_THAT(values_of(run("matMul", {a, b})), ElementsAre(16, -10, 42, -40));
  EXPECT_THAT(values_of(run("matTranMulL", {a, b})), ElementsAre(19, -5, 32, -20));
  EXPECT_THAT(values_of(run("matTranMulR", {a, b})), ElementsAre(-30, 13, -50, 29));
}

TEST(NamedKernels, AVectorIsSubtractedByRows) {
  const Tensor row = f64({1, 2}, {100, 200});
  EXPECT_THAT(values_of(run("matVecSub", {row, a})), ElementsAre(99, 198, 97, 196));
  EXPECT_THROW(run("matVecSub", {a, a}), UserError) << "a vector of two rows";
}

TEST(NamedKernels, UnaryOnesWork) {
  EXPECT_THAT(values_of(run("rowSum", {a})), ElementsAre(3, 7));
  EXPECT_THAT(values_of(run("rowSum", {f64({3}, {1, 2, 3})})), ElementsAre(6));
  EXPECT_THAT(values_of(run("diag", {a})), ElementsAre(1, 4));
  EXPECT_THAT(values_of(run("transpose", {f64({1, 3}, {1, 2, 3})})), ElementsAre(1, 2, 3));
  EXPECT_EQ(run("transpose", {f64({1, 3}, {1, 2, 3})}).shape(), make_shape({3, 1}));
  EXPECT_THAT(values_of(run("relu", {b})), ElementsAre(10, 0, 3, 5));
  EXPECT_THAT(values_of(run("step", {b})), ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(values_of(run("negate", {b})), ElementsAre(-10, 20, -3, -5));
  EXPECT_THAT(values_of(run("sigmoid", {f64({1}, {0})})), ElementsAre(0.5));
  EXPECT_THAT(values_of(run("exp", {f64({1}, {0})})), ElementsAre(1));
  EXPECT_THAT(values_of(run("id", {b})), ElementsAre(10, -20, 3, 5));
}

TEST(NamedKernels, MinPairGivesTheFirstLeastValueWithItsPosition) {
  const Tensor values = tensor_of(DType::f32, make_shape({4}), {7, 2, 2, 9});
  const Tensor pair = run("minPair", {values, i64({4}, {10, 11, 12, 13})});
  EXPECT_EQ(pair.dtype(), DType::f64);
  EXPECT_THAT(values_of(pair), ElementsAre(2, 11));
  const std::vector<double> nan = values_of(run("minPair", {f64({3}, {1, std::nan(""), 0}), i64({3}, {4, 5, 6})}));
  EXPECT_TRUE(std::isnan(nan[0]));
  EXPECT_EQ(nan[1], 5);
}

// Every order of folding three of these pairs gives the same pair, bit for bit.
TEST(NamedKernels, MinIndexIsAssociativeAndCommutative) {
  const std::vector<double> distances{1, 1, 0, infinity, -infinity, std::nan("")};
  std::vector<Tensor> pairs;
  for (const double distance : distances) {
    for (const double index : {3.0, 1.0}) pairs.push_back(f64({2}, {distance, index}));
  }
  const Kernel kernel = named_kernel("minIndex", {DType::f64, DType::f64}, {1, 1});
  const auto fold = [&](const Tensor& x, const Tensor& y) { return evaluate(kernel, {x, y}, {}); };
  const auto equal = [](const Tensor& x, const Tensor& y) {
    return same(values_of(x)[0], values_of(y)[0]) && values_of(x)[1] == values_of(y)[1];
  };
  for (const Tensor& x : pairs) {
    for (const Tensor& y : pairs) {
      EXPECT_TRUE(equal(fold(x, y), fold(y, x)));
      for (const Tensor& z : pairs) EXPECT_TRUE(equal(fold(fold(x, y), z), fold(x, fold(y, z))));
    }
  }
  EXPECT_THAT(values_of(fold(f64({2}, {1, 9}), f64({2}, {1, 4}))), ElementsAre(1, 4))
      << "the lesser index among equals";
  EXPECT_THAT(values_of(fold(f64({2}, {0, 9}), f64({2}, {1, 4}))), ElementsAre(0, 9));
  EXPECT_TRUE(is_associative_commutative(kernel));
}

TEST(NamedKernels, AReductionGoesOnFromAValueAsItsFoldDoes) {
  const auto of = [](const char* name) { return named_kernel(name, {DType::f32, DType::f32}, {2, 2}); };
  EXPECT_TRUE(reduces_onto(of("matMul"), of("matAdd")));
  EXPECT_FALSE(reduces_onto(of("matMul"), of("max")));
  EXPECT_FALSE(reduces_onto(of("matAdd"), of("matAdd"))) << "no reduction";
  EXPECT_FALSE(reduces_onto(of("matMul"), of("matMul"))) << "no fold";
  const std::vector<DType> narrow{DType::bf16, DType::bf16};
  EXPECT_FALSE(reduces_onto(named_kernel("matMul", narrow, {2, 2}), named_kernel("matAdd", narrow, {2, 2})))
      << "each partial result is rounded";
}

TEST(NamedKernels, RowsAreWhatTheGuardsOfRulesExpect) {
  const auto of = [](const char* name) { return named_kernel(name, {DType::f32, DType::f32}, {2, 2}); };
  for (const char* name : {"matAdd", "add", "elemMul", "mul", "max", "min", "logAddExp", "minIndex"})
    EXPECT_TRUE(is_associative_commutative(of(name))) << name;
  for (const char* name : {"matSub", "matMul", "matVecSub"}) EXPECT_FALSE(is_associative_commutative(of(name))) << name;
  EXPECT_TRUE(distributes_over(named_kernel("diag", {DType::f32}, {2}), of("matAdd")));
  EXPECT_TRUE(distributes_over(named_kernel("rowSum", {DType::f32}, {2}), of("matSub")));
  EXPECT_FALSE(distributes_over(named_kernel("relu", {DType::f32}, {2}), of("matAdd")));
}

TEST(NamedKernels, EveryRowCanBeBuiltAndShown) {
  for (const NamedKernel& row : all_named_kernels()) {
    std::vector<DType> dtypes(row.arguments, DType::f32);
    if (row.name == "minPair") dtypes[1] = DType::i64;
    const std::size_t rank = row.name == "minPair" ? 1 : 2;
    const Kernel kernel = named_kernel(row.name, dtypes, std::vector<std::size_t>(row.arguments, rank));
    EXPECT_EQ(kernel.name, row.name);
    EXPECT_THAT(formula(kernel), testing::StartsWith(kernel.steps.empty()       ? "Z = A"
                                                     : kernel.steps.size() == 1 ? "Z["
                                                                                : "T1["));
  }
}

TEST(NamedKernels, WhatDoesNotFitIsRefusedByName) {
  EXPECT_THAT(refusal("matMull", {DType::f32, DType::f32}, {2, 2}),
              testing::AllOf(HasSubstr("unknown kernel 'matMull'"), HasSubstr("'matMul'")));
  EXPECT_THAT(refusal("matMul", {DType::f32}, {2}), HasSubstr("kernel matMul takes 2 arrays, not 1"));
  EXPECT_THAT(refusal("matMul", {DType::f32, DType::f32}, {2, 3}), HasSubstr("2 dimensions as argument 2, not with 3"));
  EXPECT_THAT(refusal("matAdd", {DType::f32, DType::f32}, {2, 3}), HasSubstr("equal rank, not with 2 and 3"));
  EXPECT_THAT(refusal("rowSum", {DType::f32}, {0}), HasSubstr("at least 1 dimension"));
  EXPECT_THAT(refusal("minPair", {DType::f32, DType::i32}, {1, 1}), HasSubstr("f32 and i32"));
}

/// What is wrong with a kernel of one array.
std::string wrong(const std::string& statement) {
  try {
    define(statement, {DType::f32});
  } catch (const ProgramError& error) {
    return error.what();
  }
  return "";
}

TEST(KernelDefinitions, ArraysGiveTheExtents) {
  const Kernel l2 = define("l2(A[i,j], B[j,k]) -> [i,k] = sum[j] sq(A[i,j] - B[j,k])", {DType::f64, DType::f64});
  EXPECT_EQ(result_shape(l2, {make_shape({5, 3}), make_shape({3, 7})}), make_shape({5, 7}));
  EXPECT_THAT(values_of(evaluate(l2, {a, b}, {})), ElementsAre(82, 450, 50, 530));
  EXPECT_THROW(result_shape(l2, {make_shape({5, 3}), make_shape({4, 7})}), UserError);
}

TEST(KernelDefinitions, WindowsTakeTheExtentsThatAreWritten) {
  const Kernel convolution =
      define("conv(X[y+dy], W[dy]) -> [y] with y=3, dy=2 = sum[dy] X[y+dy] * W[dy]", {DType::f64, DType::f64});
  EXPECT_THAT(values_of(evaluate(convolution, {f64({4}, {1, 2, 3, 4}), f64({2}, {1, 10})}, {})),
              ElementsAre(21, 32, 43));
  EXPECT_THROW(result_shape(convolution, {make_shape({4}), make_shape({3})}), UserError) << "dy is 2";
  const Kernel padded = define("padded(X[x]) -> [y] with y=4 = pad(X[y-1], 0)", {DType::f64});
  EXPECT_THAT(values_of(evaluate(padded, {f64({2}, {5, 6})}, {})), ElementsAre(0, 5, 6, 0));
  EXPECT_THAT(wrong("shift(X[x]) -> [o] = X[o+1]"), HasSubstr("extent of label 'o'"));
  EXPECT_THAT(wrong("steps(X[x]) -> [o] = X[o+1] - X[o]"), HasSubstr("with o=4"));
  const Kernel steps = define("steps(X[x]) -> [o] with o=2 = X[o+1] - X[o]", {DType::f64});
  EXPECT_EQ(steps.steps.size(), 1U);
}

TEST(KernelDefinitions, ViewsTakeTheFirstExtentOfAGroupFromTheArray) {
  const Kernel split = define("split(A[b,(h d)]) -> [b,h,d] with d=4 = view", {DType::f32});
  EXPECT_EQ(result_shape(split, {make_shape({3, 20})}), make_shape({3, 5, 4}));
  EXPECT_THROW(result_shape(split, {make_shape({3, 10})}), UserError);
  EXPECT_THAT(wrong("split(A[b,(h d)]) -> [b,h,d] = view"), HasSubstr("open"));
  EXPECT_THAT(wrong("split(A[b,(h d)]) -> [b,h,d] with h=2, d=4 = view"), HasSubstr("first of its group"));
}

TEST(KernelDefinitions, AnUnreadParameterCanGiveAnExtent) {
  const Kernel spread = define("spread(A[i], P[j]) -> [i,j] = A[i]", {DType::f64, DType::i64});
  EXPECT_THAT(values_of(evaluate(spread, {f64({2}, {1, 2}), i64({3}, {0, 1, 2})}, {})), ElementsAre(1, 1, 1, 2, 2, 2));
}

TEST(KernelDefinitions, SeveralReductionsBecomeSeveralSteps) {
  const Kernel centred = define("centred(A[i]) -> [i] = A[i] - mean[j] A[j]", {DType::f64});
  EXPECT_EQ(centred.steps.size(), 2U);
  EXPECT_THAT(values_of(evaluate(centred, {f64({3}, {1, 2, 6})}, {})), ElementsAre(-2, -1, 3));
  const Kernel given = define("windows(A[i]) -> [o] with o=2 = S[o] + S[o+1] given S[i] = 2 * A[i]", {DType::f64});
  EXPECT_THAT(values_of(evaluate(given, {f64({3}, {1, 2, 6})}, {})), ElementsAre(6, 16));
}

TEST(NamedKernels, AnExtentOfZeroIsNotOneThatArraysGive) {
  Kernel kernel = named_kernel("negate", {DType::f64}, {1});
  Label& label = std::get<EinSum>(kernel.steps.front().op).labels.front();
  EXPECT_TRUE(label.extent.is_open());
  EXPECT_EQ(result_shape(kernel, {make_shape({3})}), make_shape({3}));
  label.extent = Extent(0);
  EXPECT_EQ(result_shape(kernel, {make_shape({0})}), make_shape({0}));
  EXPECT_THROW(result_shape(kernel, {make_shape({3})}), UserError);
}

// Beside an open label or extent, and in its place: an extent of 0 that is written is one.
TEST(KernelDefinitions, AnExtentOfZeroIsNotOneThatArraysGive) {
  const Kernel none = define("none(A[i,j]) -> [i,j] with i=0 = A[i,j] + 1", {DType::f64});
  EXPECT_EQ(result_shape(none, {make_shape({0, 3})}), make_shape({0, 3}));
  EXPECT_THROW(result_shape(none, {make_shape({2, 3})}), UserError);
  const Kernel sums = define("sums(A[i,j]) -> [i] with j=0 = sum[j] A[i,j]", {DType::f64});
  EXPECT_THAT(values_of(evaluate(sums, {f64({2, 0}, {})}, {})), ElementsAre(0, 0));
  EXPECT_THROW(result_shape(sums, {make_shape({2, 1})}), UserError);
  const Kernel split = define("split(A[(h d)]) -> [d,h] with h=3, d=0 = view", {DType::f64});
  EXPECT_EQ(result_shape(split, {make_shape({0})}), make_shape({0, 3}));
  const Kernel unknown = define("split(A[(h d)]) -> [d,h] with d=0 = view", {DType::f64});
  EXPECT_THROW(result_shape(unknown, {make_shape({0})}), UserError) << "nothing says what h is";
}

TEST(KernelDefinitions, LabelsOfUnknownExtentAreNotTakenForEachOther) {
  const Kernel kernel = define("k(A[i], B[j]) -> [] = (sum[i] i) * (sum[j] j)", {DType::f64, DType::f64});
  EXPECT_THAT(values_of(evaluate(kernel, {f64({3}, {0, 0, 0}), f64({5}, {0, 0, 0, 0, 0})}, {})), ElementsAre(30));
}

TEST(KernelDefinitions, MistakesAreNamed) {
  EXPECT_THAT(wrong("k(A[i]) -> [i] = A[i-1]"), HasSubstr("reads position -1"));
  EXPECT_THAT(wrong("k(A[i]) -> [i] = (A[i] % 2)"), HasSubstr("'%' is not part of the language"));

  EXPECT_THAT(wrong("k(A[i]) -> [i] = A[i] +"), HasSubstr("expression is missing"));
  EXPECT_THAT(wrong("k(A[i]) -> [i] = A[i,j]"), HasSubstr("'A' has 1 dimension"));
  EXPECT_THAT(wrong("k(A[i]) -> [i] = B[i]"), HasSubstr("unknown tensor 'B'"));
  EXPECT_THAT(wrong("k(A[i]) -> [i,j] = A[i]"), HasSubstr("label 'j'"));
  EXPECT_THAT(wrong("k(A[i]) -> [i] with q=3 = A[i]"), HasSubstr("'q'"));
  EXPECT_THAT(wrong("k(A[i]) -> [o] with o=9000000000000000000 = A[2147483646*o+2147483647]"), HasSubstr("error"));
}

TEST(KernelDefinitions, OrderOfOperandsAndLabelsCanBeNormalised) {
  Kernel kernel = define("k(A[i,j], B[j,k]) -> [i,k] = sum[j] B[j,k] * A[i,j]", {DType::f32, DType::f32});
  const Kernel before = kernel;
  auto& einsum = std::get<EinSum>(kernel.steps[0].op);
  EXPECT_EQ(in_reading_order(kernel), before);
  std::swap(einsum.operands[0], einsum.operands[1]);
  std::swap(kernel.steps[0].reads[0], kernel.steps[0].reads[1]);
  std::get<OperandValue>(einsum.body.steps[0].op).operand = 1;
  std::get<OperandValue>(einsum.body.steps[1].op).operand = 0;
  EXPECT_NE(kernel, before);
  EXPECT_EQ(in_reading_order(kernel), before);
}

}  // namespace
}  // namespace einrel::test
