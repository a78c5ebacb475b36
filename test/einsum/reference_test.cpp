#include "einsum/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "support/special_values.h"

namespace einrel {
namespace {

using test::infinity;
using test::nan;

Index at(std::size_t label) { return {0, {{1, label}}}; }
Access access(std::vector<Index> indices, std::optional<double> pad = {}) { return {std::move(indices), pad}; }
ScalarStep operand(std::size_t i, DType type) { return {type, OperandValue{i}}; }
ScalarStep number(double value, DType type) { return {type, Constant{value}}; }
ScalarStep call(UnaryFunction function, DType type) { return {type, ApplyUnary{function}}; }
ScalarStep call(BinaryFunction function, DType type) { return {type, ApplyBinary{function}}; }

Vertex vertex_of(DType dtype, EinSum einsum) {
  Vertex vertex;
  vertex.name = "Z";
  vertex.dtype = dtype;
  for (const std::size_t label : einsum.output) vertex.bound.push_back(einsum.labels[label].extent);
  vertex.op = std::move(einsum);
  return vertex;
}

/// Z = reducer[i] X[i] over all of a vector.
Tensor reduced(Reducer reducer, const Tensor& x) {
  const DType type = x.dtype() == DType::bf16 || x.dtype() == DType::f16 ? DType::f32 : x.dtype();
  const EinSum einsum{{{"i", x.shape()[0]}}, {}, {0}, reducer, {access({at(0)})}, {{operand(0, type)}}};
  return evaluate_reference(vertex_of(reduced_type(reducer, type), einsum), {x}, {});
}

double reduced(Reducer reducer, const std::vector<double>& values, DType dtype = DType::f64) {
  const auto count = static_cast<std::int64_t>(values.size());
  return values_of(reduced(reducer, tensor_of(dtype, make_shape({count}), values))).at(0);
}

/// Z[i] = body of X[i] and Y[i].
std::vector<double> mapped(DType dtype, std::vector<ScalarStep> body, const Tensor& x, const Tensor& y,
                           const ScalarBindings& scalars = {}) {
  const EinSum einsum{{{"i", x.shape()[0]}}, {0}, {}, {}, {access({at(0)}), access({at(0)})}, {std::move(body)}};
  return values_of(evaluate_reference(vertex_of(dtype, einsum), {x, y}, scalars));
}

TEST(Reference, MultipliesMatrices) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64}) {
    const Tensor x = tensor_of(dtype, make_shape({2, 2}), {1, 2, 3, 4});
    const Tensor y = tensor_of(dtype, make_shape({2, 2}), {5, 6, 7, 8});
    const EinSum product{{{"i", Extent(2)}, {"j", Extent(2)}, {"k", Extent(2)}},
                         {0, 2},
                         {1},
                         Reducer::sum,
                         {access({at(0), at(1)}), access({at(1), at(2)})},
                         {{operand(0, dtype), operand(1, dtype), call(BinaryFunction::multiply, dtype)}}};
    EXPECT_EQ(values_of(evaluate_reference(vertex_of(dtype, product), {x, y}, {})),
              (std::vector<double>{19, 22, 43, 50}));
    // And Z[k,i] of the transposed X, which is read through its strides.
    EinSum swapped = product;
    swapped.output = {2, 0};
    EXPECT_EQ(values_of(evaluate_reference(vertex_of(dtype, swapped), {x.permuted({1, 0}), y}, {})),
              (std::vector<double>{26, 38, 30, 44}));
  }
}

TEST(Reference, RunsAGraphStepByStep) {
  // softmax of (0, log 3): M = max X; E = exp(X - M); S = sum E; Y = E / S = (1/4, 3/4).
  const Label i{"i", Extent(2)};
  const Shape two = make_shape({2});
  const DType f = DType::f64;
  EinGraph graph;
  graph.vertices.push_back({"X", f, two, {}, Input{}, {}});
  graph.vertices.push_back(
      {"M", f, {}, {{0}}, EinSum{{i}, {}, {0}, Reducer::max, {access({at(0)})}, {{operand(0, f)}}}, {}});
  graph.vertices.push_back(
      {"E",
       f,
       two,
       {{0}, {1}},
       EinSum{{i},
              {0},
              {},
              {},
              {access({at(0)}), access({})},
              {{operand(0, f), operand(1, f), call(BinaryFunction::subtract, f), call(UnaryFunction::exp, f)}}},
       {}});
  graph.vertices.push_back(
      {"S", f, {}, {{2}}, EinSum{{i}, {}, {0}, Reducer::sum, {access({at(0)})}, {{operand(0, f)}}}, {}});
  graph.vertices.push_back({"Y",
                            f,
                            two,
                            {{2}, {3}},
                            EinSum{{i},
                                   {0},
                                   {},
                                   {},
                                   {access({at(0)}), access({})},
                                   {{operand(0, f), operand(1, f), call(BinaryFunction::divide, f)}}},
                            {}});
  graph.outputs = {{4}, {1}};
  const std::vector<Tensor> outputs = evaluate_reference(graph, {{"X", tensor_of(f, two, {0, std::log(3)})}}, {});
  ASSERT_EQ(outputs.size(), 2U);
  EXPECT_NEAR(values_of(outputs[0])[0], 0.25, 1e-15);
  EXPECT_NEAR(values_of(outputs[0])[1], 0.75, 1e-15);
  EXPECT_EQ(values_of(outputs[1]), std::vector<double>{std::log(3)});
  EXPECT_THROW(evaluate_reference(graph, {}, {}), Bug);
}

TEST(Reference, ConvolvesWithPadding) {
  // Z[x] = sum[d] pad(X[2*x+d-1], 10) * W[d], X = (1, 2, 3, 4), W = (1, 100, 10000).
  const DType f = DType::f32;
  const EinSum conv{{{"x", Extent(3)}, {"d", Extent(3)}},
                    {0},
                    {1},
                    Reducer::sum,
                    {access({{-1, {{2, 0}, {1, 1}}}}, 10.0), access({at(1)})},
                    {{operand(0, f), operand(1, f), call(BinaryFunction::multiply, f)}}};
  const Tensor x = tensor_of(f, make_shape({4}), {1, 2, 3, 4});
  const Tensor w = tensor_of(f, make_shape({3}), {1, 100, 10000});
  EXPECT_EQ(values_of(evaluate_reference(vertex_of(f, conv), {x, w}, {})),
            (std::vector<double>{10 + 100 + 20000, 2 + 300 + 40000, 4 + 1000 + 100000}));
  EinSum unpadded = conv;
  unpadded.operands[0].pad.reset();
  EXPECT_THROW(evaluate_reference(vertex_of(f, unpadded), {x, w}, {}), Bug);
}

TEST(Reference, KnowsItsLabelsAndScalars) {
  // Z[i,j] = eta * (10*i + j) as f32; j is read by no operand.
  const DType f = DType::f32;
  const EinSum einsum{{{"i", Extent(2)}, {"j", Extent(3)}},
                      {0, 1},
                      {},
                      {},
                      {},
                      {{{f, ScalarValue{"eta"}},
                        number(10, f),
                        {f, LabelValue{0}},
                        call(BinaryFunction::multiply, f),
                        {f, LabelValue{1}},
                        call(BinaryFunction::add, f),
                        call(BinaryFunction::multiply, f)}}};
  EXPECT_EQ(values_of(evaluate_reference(vertex_of(f, einsum), {}, {{"eta", 0.5}})),
            (std::vector<double>{0, 0.5, 1, 5, 5.5, 6}));
  EXPECT_THROW(evaluate_reference(vertex_of(f, einsum), {}, {}), Bug);
}

TEST(Reference, FindsTheFirstOfEqualExtremes) {
  EXPECT_EQ(reduced(Reducer::argmax, {1, 5, 2, 5}), 1);
  EXPECT_EQ(reduced(Reducer::argmin, {3, 0, 2, 0}), 1);
  EXPECT_EQ(reduced(Reducer::argmax, {-infinity, -infinity}), 0);
  EXPECT_EQ(reduced(Reducer::argmax, {7, 7}, DType::i32), 0);
  EXPECT_EQ(reduced(Reducer::argmax, {0, 1, 1}, DType::boolean), 1);
}

TEST(Reference, CountsPositionsInRowMajorOrderOfTheReducedLabels) {
  // X = ((0, 9), (1, 2), (3, 4)): the 9 stands at i=0, j=1.
  const Tensor x = tensor_of(DType::f32, make_shape({3, 2}), {0, 9, 1, 2, 3, 4});
  EinSum einsum{{{"i", Extent(3)}, {"j", Extent(2)}},
                {},
                {0, 1},
                Reducer::argmax,
                {access({at(0), at(1)})},
                {{operand(0, DType::f32)}}};
  EXPECT_EQ(values_of(evaluate_reference(vertex_of(DType::i64, einsum), {x}, {})), std::vector<double>{1});
  einsum.reduced = {1, 0};
  EXPECT_EQ(values_of(evaluate_reference(vertex_of(DType::i64, einsum), {x}, {})), std::vector<double>{3});
}

TEST(Reference, LetsTheFirstNaNWinEveryExtreme) {
  EXPECT_EQ(reduced(Reducer::argmax, {1, nan, infinity, nan}), 1);
  EXPECT_EQ(reduced(Reducer::argmin, {1, nan, -infinity, nan}), 1);
  EXPECT_TRUE(std::isnan(reduced(Reducer::max, {1, nan, infinity})));
  EXPECT_TRUE(std::isnan(reduced(Reducer::min, {nan, -infinity})));
}

TEST(Reference, TakesLogsumexpToItsLimits) {
  EXPECT_DOUBLE_EQ(reduced(Reducer::logsumexp, {0, 0, 0, 0}), std::log(4));
  EXPECT_DOUBLE_EQ(reduced(Reducer::logsumexp, {1000, 1000}), 1000 + std::log(2));
  EXPECT_DOUBLE_EQ(reduced(Reducer::logsumexp, {-1000, -infinity}), -1000);
  EXPECT_EQ(reduced(Reducer::logsumexp, {-infinity, -infinity}), -infinity);
  EXPECT_EQ(reduced(Reducer::logsumexp, {1, infinity, infinity}), infinity);
  EXPECT_TRUE(std::isnan(reduced(Reducer::logsumexp, {1, nan, infinity})));
}

TEST(Reference, ReducesNothingToTheIdentity) {
  const std::vector<double> nothing;
  EXPECT_EQ(reduced(Reducer::sum, nothing), 0);
  EXPECT_EQ(reduced(Reducer::sumsq, nothing), 0);
  EXPECT_EQ(reduced(Reducer::prod, nothing), 1);
  EXPECT_EQ(reduced(Reducer::any, nothing), 0);
  EXPECT_EQ(reduced(Reducer::all, nothing), 1);
  EXPECT_EQ(reduced(Reducer::logsumexp, nothing), -infinity);
  EXPECT_TRUE(std::isnan(reduced(Reducer::mean, nothing)));
  EXPECT_EQ(reduced(Reducer::prod, nothing, DType::i64), 1);
  for (const Reducer extreme : {Reducer::max, Reducer::min, Reducer::argmax, Reducer::argmin}) {
    EXPECT_THROW(reduced(extreme, nothing), Bug);
  }
}

TEST(Reference, CountsNaNAsTrue) {
  EXPECT_EQ(reduced(Reducer::any, {0, nan}), 1);
  EXPECT_EQ(reduced(Reducer::all, {1, nan}), 1);
  EXPECT_EQ(reduced(Reducer::all, {1, 0}), 0);
  EXPECT_EQ(reduced(Reducer::any, {0, -0.0}), 0);
}

TEST(Reference, WrapsIntegersAtTheWidthOfTheirType) {
  const Tensor x = tensor_of(DType::i32, make_shape({2}), {2147483647, -2147483648});
  const DType i = DType::i32;
  EXPECT_EQ(mapped(i, {operand(0, i), {i, Constant{std::int64_t{1}}}, call(BinaryFunction::add, i)}, x, x),
            (std::vector<double>{-2147483648, -2147483647}));
  EXPECT_EQ(mapped(i, {operand(0, i), call(UnaryFunction::abs, i)}, x, x),
            (std::vector<double>{2147483647, -2147483648}));
  // As a sum the i32 numbers wrap once, at the end: (2^31-1) + (2^31-1) = -2.
  EXPECT_EQ(reduced(Reducer::sum, {2147483647, 2147483647}, i), -2);
  EXPECT_EQ(reduced(Reducer::mean, {2147483647, 2147483647}, i), 2147483647);
  EXPECT_EQ(reduced(Reducer::sum, {1, 1, 0, 1}, DType::boolean), 3);
  EXPECT_EQ(reduced(Reducer::sumsq, {3, -4}, i), 25);
  EXPECT_EQ(reduced(Reducer::sumsq, {65536, 65536}, i), 0);
  EXPECT_EQ(reduced(Reducer::sumsq, {0.5, -1.5}), 2.5);
}

TEST(Reference, ConvertsAsItSays) {
  const Tensor x = tensor_of(DType::f64, make_shape({6}), {-1.9, 2.5, 1e30, -infinity, nan, 0.5});
  const auto converted = [&](DType to) { return mapped(to, {operand(0, DType::f64), {to, Convert{}}}, x, x); };
  EXPECT_EQ(converted(DType::i32), (std::vector<double>{-1, 2, 2147483647, -2147483648, 0, 0}));
  EXPECT_EQ(converted(DType::i64), (std::vector<double>{-1, 2, 0x1p63, -0x1p63, 0, 0}));
  EXPECT_EQ(converted(DType::boolean), (std::vector<double>{1, 1, 1, 1, 1, 1}));
  // i64 to i32 wraps; i64 to f32 rounds once: 2^62 + 2^38 + 1 lies just above the middle of two f32.
  Tensor wide(DType::i64, make_shape({1}));
  const std::int64_t value = (std::int64_t{1} << 62) + (std::int64_t{1} << 38) + 1;
  std::memcpy(wide.mutable_data(), &value, sizeof value);
  const ScalarStep read = operand(0, DType::i64);
  EXPECT_EQ(mapped(DType::i32, {read, {DType::i32, Convert{}}}, wide, wide), std::vector<double>{1});
  EXPECT_EQ(mapped(DType::f32, {read, {DType::f32, Convert{}}}, wide, wide), std::vector<double>{0x1p62 + 0x1p39});
}

TEST(Reference, RoundsEveryStepToItsType) {
  // In f32, 1 + 2^-25 is 1, so that the difference vanishes; in f64 it does not.
  const auto difference = [](DType type) {
    const Tensor one = tensor_of(type, make_shape({1}), {1});
    return mapped(type,
                  {operand(0, type), number(0x1p-25, type), call(BinaryFunction::add, type), operand(1, type),
                   call(BinaryFunction::subtract, type)},
                  one, one);
  };
  EXPECT_EQ(difference(DType::f32), std::vector<double>{0});
  EXPECT_EQ(difference(DType::f64), std::vector<double>{0x1p-25});
  // A sum is rounded once: 2^24 and four ones.
  EXPECT_EQ(reduced(Reducer::sum, {0x1p24, 1, 1, 1, 1}, DType::f32), 0x1p24 + 4);
  // bf16 is computed in f32 and stored in 8 bits of mantissa: 1.0078125^2 = 1.01568... is nearest to 1.015625.
  const Tensor narrow = tensor_of(DType::bf16, make_shape({1}), {1.0078125});
  EXPECT_EQ(mapped(DType::bf16, {operand(0, DType::f32), call(UnaryFunction::sq, DType::f32)}, narrow, narrow),
            std::vector<double>{1.015625});
}

TEST(Reference, ChoosesByTruth) {
  const DType f = DType::f64;
  const Tensor x = tensor_of(f, make_shape({4}), {1, 0, nan, -0.0});
  const Tensor y = tensor_of(f, make_shape({4}), {10, 20, 30, 40});
  EXPECT_EQ(mapped(f, {operand(0, f), operand(1, f), number(-1, f), {f, ApplyWhere{}}}, x, y),
            (std::vector<double>{10, -1, 30, -1}));
  EXPECT_EQ(mapped(DType::boolean, {operand(0, f), operand(1, f), call(BinaryFunction::less, DType::boolean)}, x, y),
            (std::vector<double>{1, 1, 0, 1}));
}

TEST(Reference, SplitsMergesAndPermutesViews) {
  const std::vector<Label> labels{{"a", Extent(2)}, {"b", Extent(3)}};
  const Tensor flat = tensor_of(DType::i32, make_shape({6}), {0, 1, 2, 3, 4, 5});
  Vertex split{"V", DType::i32, make_shape({2, 3}), {}, View{labels, {{0, 1}}, {{0}, {1}}}, {}};
  const Tensor matrix = evaluate_reference(split, {flat}, {});
  EXPECT_EQ(matrix.shape(), make_shape({2, 3}));
  EXPECT_EQ(values_of(matrix), values_of(flat));

  const Vertex turned{"V", DType::i32, make_shape({3, 2}), {}, View{labels, {{0, 1}}, {{1}, {0}}}, {}};
  EXPECT_EQ(values_of(evaluate_reference(turned, {flat}, {})), (std::vector<double>{0, 3, 1, 4, 2, 5}));

  const Vertex merged{"V", DType::i32, make_shape({6}), {}, View{labels, {{0}, {1}}, {{1, 0}}}, {}};
  EXPECT_EQ(values_of(evaluate_reference(merged, {matrix}, {})), (std::vector<double>{0, 3, 1, 4, 2, 5}));
}

TEST(Reference, GivesEmptyResultsForEmptyExtents) {
  const EinSum einsum{
      {{"i", Extent(0)}, {"j", Extent(3)}}, {1, 0}, {}, {}, {access({at(0)})}, {{operand(0, DType::f32)}}};
  const Tensor empty = tensor_of(DType::f32, make_shape({0}), {});
  const Tensor result = evaluate_reference(vertex_of(DType::f32, einsum), {empty}, {});
  EXPECT_EQ(result.shape(), make_shape({3, 0}));
  EXPECT_EQ(result.count(), 0);
}

}  // namespace
}  // namespace einrel
