#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/evaluate.h"
#include "support/kernel_check.h"
#include "support/random_join.h"
#include "support/random_selection.h"

namespace einrel::test {
namespace {

// Every kernel of the registry against the reference.

class RandomSpecs : public testing::TestWithParam<int> {
 protected:
  /// Most results in row-major order, some said to be large; those that can, sometimes accumulate.
  static KernelCheck::Result random_result(const RandomEinsum& random) {
    Random draw(random.seed + 2);
    const bool row_major = draw.chance(0.6);
    const bool accumulate = continuation(random.einsum().reducer).has_value() && draw.chance(0.3);
    return {row_major, accumulate, draw.chance(0.3)};
  }

  static testing::AssertionResult every_kernel_agrees(const RandomEinsum& random,
                                                      std::map<std::string_view, int>& taken) {
    verify(graph_of(random));
    if (!needs_kernel(random.einsum())) return testing::AssertionSuccess();
    return KernelCheck(random, random_result(random)).run(taken);
  }
};

TEST_P(RandomSpecs, OfAnyBodyAgreeWithTheReference) {
  constexpr int per_instance = 500;
  std::map<std::string_view, int> taken;
  for (int i = 0; i < per_instance; ++i) {
    ASSERT_TRUE(every_kernel_agrees(random_einsum(static_cast<std::uint64_t>(GetParam() * per_instance + i)), taken));
  }
  EXPECT_GT(taken["blocks"], per_instance / 2);
}

TEST_P(RandomSpecs, OfLargeExtentsAgreeWithTheReference) {
  constexpr int per_instance = 400;
  std::map<std::string_view, int> taken;
  for (int i = 0; i < per_instance; ++i) {
    const std::int64_t most_positions = i % 20 == 0 ? 300000 : 10000;
    ASSERT_TRUE(every_kernel_agrees(
        random_join(static_cast<std::uint64_t>(GetParam() * per_instance + i), most_positions), taken));
  }
  for (const KernelInfo& kernel : all_kernels()) {
    const bool is_for_joins = kernel.name != "select" && kernel.name != "pieces";
    EXPECT_EQ(taken[kernel.name] > 0, is_for_joins) << kernel.name;
  }
}

/// The same body before a position of one of its labels, and numbers or the body again behind it; nothing where that
/// has no labels or no exact result.
std::optional<RandomEinsum> random_pieces(std::uint64_t seed) {
  RandomEinsum result = random_einsum(seed);
  auto& einsum = std::get<EinSum>(result.vertex.op);
  if (!result.exact || einsum.reducer || einsum.output.empty()) return std::nullopt;
  Random random(seed + 1);
  const ScalarExpr body = einsum.body;
  const DType type = body.type();
  const std::size_t label = einsum.output[seed % einsum.output.size()];
  const std::int64_t extent = einsum.labels[label].extent.value();
  const auto condition = [&] {
    using enum BinaryFunction;
    const auto function = random.one_of(std::array{less, less_equal, greater, greater_equal});
    return ScalarExpr{{{DType::i64, LabelValue{label}},
                       whole_step(random.between(-1, extent + 1)),
                       binary_step(DType::boolean, function)}};
  };
  ScalarExpr pieces = condition();
  append(pieces, body);
  const bool has_three = random.chance(0.5);
  if (has_three) append(pieces, condition());
  append(pieces, {{whole_step(1, type)}});
  if (has_three) {
    append(pieces, body);
    append(pieces, {{{type, ApplyWhere{}}}});
  }
  append(pieces, {{{type, ApplyWhere{}}}});
  einsum.body = pieces;
  return result;
}

TEST_P(RandomSpecs, OfPiecesAgreeWithTheReference) {
  constexpr int per_instance = 1500;
  std::map<std::string_view, int> taken;
  for (int i = 0; i < per_instance; ++i) {
    const auto pieces = random_pieces(static_cast<std::uint64_t>(GetParam() * per_instance + i));
    if (!pieces) continue;
    ASSERT_TRUE(every_kernel_agrees(*pieces, taken));
  }
  EXPECT_GT(taken["pieces"], per_instance / 20);
}

TEST_P(RandomSpecs, OfSelectionsAgreeWithTheReference) {
  constexpr int per_instance = 500;
  std::map<std::string_view, int> taken;
  for (int i = 0; i < per_instance; ++i) {
    const auto seed = static_cast<std::uint64_t>(GetParam() * per_instance + i);
    ASSERT_TRUE(every_kernel_agrees(random_selection(seed, i % 10 == 0 ? 50000 : 2000), taken));
  }
  EXPECT_GT(taken["select"], per_instance / 2);
}

/// Z[i,j] or a reduction over i of X[i,j] + 0.5 + 1.5 + ..., each constant another one; or, `nested`, of
/// X * 0.5 + (X * 1.5 + (X * 2.5 + ...)), of which all products are under way at once.
RandomEinsum long_body(bool nested, std::optional<Reducer> reducer) {
  constexpr int terms = 3000;
  RandomEinsum result;
  result.scalars["s"] = 0;
  EinSum einsum;
  einsum.labels = {{"i", Extent(3)}, {"j", Extent(70)}};
  einsum.output = reducer ? std::vector<std::size_t>{1} : std::vector<std::size_t>{0, 1};
  if (reducer) einsum.reduced = {0};
  einsum.reducer = reducer;
  einsum.operands = {{{{0, {{1, 0}}}, {0, {{1, 1}}}}, std::nullopt}};
  std::vector<ScalarStep>& steps = einsum.body.steps;
  steps.push_back({DType::f32, OperandValue{0}});
  for (int i = 0; i < terms; ++i) {
    steps.push_back({DType::f32, Constant{i + 0.5}});
    if (!nested) {
      steps.push_back({DType::f32, ApplyBinary{BinaryFunction::add}});
    } else {
      steps.push_back({DType::f32, ApplyBinary{BinaryFunction::multiply}});
      steps.push_back({DType::f32, OperandValue{0}});
    }
  }
  if (nested) steps.insert(steps.end(), terms, {DType::f32, ApplyBinary{BinaryFunction::add}});
  for (const std::size_t label : einsum.output) result.vertex.bound.push_back(einsum.labels[label].extent);
  result.vertex.dtype = reducer ? reduced_type(*reducer, DType::f32) : DType::f32;
  result.vertex.op = einsum;
  Random random(7);
  result.operands = {random_tensor(random, DType::f32, make_shape({3, 70}), false)};
  return result;
}

TEST(LongBodies, AgreeWithTheReferenceInsideTheBoundOfWorkspaces) {
  std::map<std::string_view, int> taken;
  for (const auto& [nested, reducer] : std::vector<std::pair<bool, std::optional<Reducer>>>{
           {false, std::nullopt}, {false, Reducer::sum}, {true, std::nullopt}, {true, Reducer::argmax}}) {
    const RandomEinsum random = long_body(nested, reducer);
    verify(graph_of(random));
    ASSERT_TRUE(KernelCheck(random, {true, reducer == Reducer::sum, false}).run(taken));
  }
  EXPECT_EQ(taken["blocks"], 4);
}

/// Z[i,j] = A[i,j] * B[i,j] + ... of operands of these types, each a part of longer rows if `sliced`.
RandomEinsum sum_of_products(const std::vector<DType>& types, bool sliced) {
  const std::vector<std::int64_t> shape{3, 2500};
  const bool wide = std::count(types.begin(), types.end(), DType::f64) > 0;
  const DType computed = wide ? DType::f64 : DType::f32;
  RandomEinsum result;
  EinSum einsum;
  einsum.labels = {{"i", Extent(shape[0])}, {"j", Extent(shape[1])}};
  einsum.output = {0, 1};
  Random random(11);
  for (std::size_t k = 0; k < types.size(); ++k) {
    einsum.operands.push_back({{{0, {{1, 0}}}, {0, {{1, 1}}}}, std::nullopt});
    einsum.body.steps.push_back({types[k] == DType::f64 ? DType::f64 : DType::f32, OperandValue{k}});
    if (wide && types[k] != DType::f64) einsum.body.steps.push_back({computed, Convert{}});
    const auto function = k % 2 == 1 ? BinaryFunction::multiply : BinaryFunction::add;
    if (k > 0) einsum.body.steps.push_back({computed, ApplyBinary{function}});
    const Tensor whole = random_tensor(random, types[k], make_shape({shape[0], shape[1] + (sliced ? 1300 : 0)}), false);
    result.operands.push_back(sliced ? whole.box({0, 64}, make_shape({shape[0], shape[1]})) : whole);
  }
  result.vertex.bound = {Extent(shape[0]), Extent(shape[1])};
  result.vertex.dtype = types[0];
  result.vertex.op = einsum;
  return result;
}

TEST(LargeResults, OfOperandsOfAnyTypesAgreeWithTheReference) {
  std::map<std::string_view, int> taken;
  int programs = 0;
  for (const bool sliced : {false, true}) {
    for (const std::vector<DType>& types :
         std::vector<std::vector<DType>>{{DType::bf16},
                                         {DType::f32},
                                         {DType::bf16, DType::bf16, DType::bf16},
                                         {DType::bf16, DType::f32, DType::f16, DType::bf16},
                                         {DType::f64, DType::bf16, DType::f32},
                                         {DType::f64, DType::f64, DType::f64}}) {
      const RandomEinsum random = sum_of_products(types, sliced);
      verify(graph_of(random));
      ASSERT_TRUE(KernelCheck(random, {true, false, true}).run(taken));
      ++programs;
    }
  }
  EXPECT_EQ(taken["blocks"], programs);
}

/// Z[j,i] or Z[i,j] = sum[k] A, which has its labels in this order and lies in the type that sums come from.
RandomEinsum sum_of_rows(const std::vector<std::size_t>& a, const std::vector<std::int64_t>& extents,
                         const std::vector<std::size_t>& output, DType dtype) {
  RandomEinsum result;
  EinSum einsum;
  Access access;
  Shape shape;
  for (std::size_t l = 0; l < extents.size(); ++l) {
    einsum.labels.push_back({std::string(1, "ijk"[l]), Extent(extents[l])});
  }
  for (const std::size_t label : a) {
    access.indices.push_back({0, {{1, label}}});
    shape.push_back(Extent(extents[label]));
  }
  einsum.operands = {access};
  einsum.output = output;
  einsum.reduced = {2};
  einsum.reducer = Reducer::sum;
  einsum.body.steps.push_back({DType::f32, OperandValue{0}});
  for (const std::size_t label : output) result.vertex.bound.push_back(Extent(extents[label]));
  result.vertex.dtype = dtype;
  result.vertex.op = einsum;
  Random random(11);
  result.operands.push_back(random_tensor(random, DType::f32, shape, false));
  return result;
}

/// Sums of operands where they lie come in longer blocks than others; so do results that lie apart, or are stored
/// narrow.
TEST(LongBlocksOfSums, AreStoredInEveryTypeSideBySideAndApart) {
  const std::vector<std::size_t> j_i{1, 0};
  const std::vector<std::size_t> i_j{0, 1};
  std::map<std::string_view, int> taken;
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    for (const bool accumulate : {false, true}) {
      for (const std::vector<std::size_t>& output : {i_j, j_i}) {
        for (const std::int64_t j : {1500, 4096, 5000}) {
          ASSERT_TRUE(KernelCheck(sum_of_rows({2, 0, 1}, {3, j, 5}, output, dtype), {true, accumulate}).run(taken));
        }
        // Rows that are reduced, so short that a block has thousands.
        ASSERT_TRUE(KernelCheck(sum_of_rows({0, 1, 2}, {3, 2048, 8}, output, dtype), {true, accumulate}).run(taken));
      }
    }
  }
  EXPECT_EQ(taken["blocks"], 4 * 2 * 2 * 4);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSpecs, testing::Range(0, 8));

}  // namespace
}  // namespace einrel::test
