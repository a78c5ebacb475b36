#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/evaluate.h"
#include "support/kernel_check.h"
#include "support/random_join.h"

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
  for (const KernelInfo& kernel : all_kernels()) EXPECT_GT(taken[kernel.name], 0) << kernel.name;
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

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSpecs, testing::Range(0, 8));

}  // namespace
}  // namespace einrel::test
