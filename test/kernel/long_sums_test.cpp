#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "kernel/evaluate.h"
#include "kernel/registry.h"
#include "support/kernel_run.h"
#include "support/product_check.h"
#include "tensor/convert.h"

namespace einrel::test {
namespace {

// Sums of millions of equal numbers, whose roundings do not cancel: added in f32 one after another they are wrong by a
// thousandth. What is right is known without a sum.

/// 1,024 additions one after another, up to 32 partial results, and the rounding of the result; in units of 2^-24.
constexpr double most_units = 1024 + 32 + 1;

constexpr std::int64_t million = std::int64_t{1} << 20;

Tensor full_of(DType dtype, const Shape& shape, double value) {
  Tensor result(dtype, shape);
  with_stored_type(dtype, [&]<class Stored>() {
    if constexpr (!std::is_same_v<Stored, Bool8>) {
      auto* const elements = reinterpret_cast<Stored*>(result.mutable_data());
      std::fill_n(elements, result.count(), narrow<Stored>(value));
    }
  });
  return result;
}

/// Z of f32 = sum of X * Y, where X is a number everywhere and Y is 1.
RandomEinsum long_sum(const Layout& layout, DType stored, double value) {
  Layout small = layout;
  for (std::int64_t& extent : small.extents) extent = 1;
  RandomEinsum sum = product(small, stored);
  EinSum einsum = sum.einsum();
  for (std::size_t l = 0; l < layout.extents.size(); ++l) einsum.labels[l].extent = Extent(layout.extents[l]);
  const auto shape_of = [&](const std::vector<std::size_t>& labels) {
    Shape shape;
    for (const std::size_t label : labels) shape.push_back(einsum.labels[label].extent);
    return shape;
  };
  sum.operands = {full_of(stored, shape_of(layout.x), value), full_of(stored, shape_of(layout.y), 1)};
  sum.vertex.dtype = DType::f32;
  sum.vertex.bound = shape_of(layout.z);
  sum.vertex.op = std::move(einsum);
  return sum;
}

double largest_error(const Tensor& result, double want) {
  double largest = 0;
  for (std::int64_t i = 0; i < result.count(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(result.load<float>(i)) - want) / want);
  return largest * 0x1p24;
}

/// By every kernel that can; counts which could.
void expect_small_errors(const RandomEinsum& sum, double want, std::map<std::string, int>& taken) {
  for (const KernelInfo& kernel : all_kernels()) {
    const KernelSpec spec = kernel_spec(sum, row_major_layout(DType::f32, sum.vertex.bound), false);
    const std::variant<Offer, Refusal> answer = kernel.offer(spec, make_nest(spec));
    if (std::holds_alternative<Refusal>(answer)) continue;
    const Offer& offer = std::get<Offer>(answer);
    const PreparedKernel prepared = offer.prepare();
    ASSERT_EQ(defect_of(offer, prepared), "") << offer.path;
    Tensor result(DType::f32, sum.vertex.bound);
    const std::vector<const std::byte*> operands = data_of(sum.operands);
    Random order(3);
    ASSERT_TRUE(run_guarded(prepared, {operands.data(), result.mutable_data()}, order)) << offer.path;
    EXPECT_LE(largest_error(result, want), most_units) << kernel.name << ": " << offer.path;
    ++taken[std::string(kernel.name)];
  }
}

TEST(LongSums, AreAsExactAsShortOnesByEveryKernel) {
  const std::vector<Layout> layouts{{{2, 2, 4 * million}, {0, 2}, {1, 2}, {0, 1}},
                                    {{2, 16, million}, {0, 2}, {2, 1}, {0, 1}},
                                    {{1, 100, million / 4 + 7}, {2, 0}, {2, 1}, {0, 1}},
                                    {{3, 5, 1025, 1023}, {0, 2, 3}, {3, 2, 1}, {0, 1}},
                                    {{9, 16, 90, 100, 110}, {0, 3, 2, 4}, {4, 3, 2, 1}, {0, 1}}};
  std::map<std::string, int> taken;
  for (const Layout& layout : layouts) {
    double count = 1;
    for (std::size_t l = 2; l < layout.extents.size(); ++l) count *= static_cast<double>(layout.extents[l]);
    const float value = 1.9F;
    expect_small_errors(long_sum(layout, DType::f32, value), count * static_cast<double>(value), taken);
    if (HasFailure()) return;
  }
  for (const char* const kernel : {"packed", "direct", "dot", "blocks"}) EXPECT_GT(taken[kernel], 0) << kernel;
}

TEST(LongSums, OfNarrowFloatsAreSumsOfF32) {
  std::map<std::string, int> taken;
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const std::int64_t rows : {1, 20}) {
      const Layout layout{{rows, 1, million}, {0, 2}, {2, 1}, {0, 1}};
      constexpr double value = 1.9140625;  // of 8 bits
      expect_small_errors(long_sum(layout, dtype, value), static_cast<double>(million) * value, taken);
    }
  }
  for (const char* const kernel : {"packed", "dot", "blocks"}) EXPECT_GT(taken[kernel], 0) << kernel;
}

/// Z[i,c] = sum[p] X[i + p] * W[p,c]
TEST(LongSums, OfWindowsAreAsExactAsShortOnes) {
  constexpr std::int64_t length = million / 4;
  const float value = 1.9F;
  RandomEinsum sum = long_sum({{8, 16, length}, {0, 2}, {2, 1}, {0, 1}}, DType::f32, value);
  EinSum einsum = sum.einsum();
  einsum.operands[0].indices = {{0, {{1, 0}, {1, 2}}}};
  sum.vertex.op = std::move(einsum);
  sum.operands[0] = full_of(DType::f32, make_shape({8 + length - 1}), value);
  std::map<std::string, int> taken;
  expect_small_errors(sum, static_cast<double>(length) * static_cast<double>(value), taken);
  EXPECT_GT(taken["windows"], 0);
}

TEST(LongSums, OfAHundredMillionEqualNumbersAreRight) {
  constexpr std::int64_t count = 100'000'000;
  const float value = 0.1F;
  RandomEinsum sum = product({{2, 1}, {0}, {0}, {1}}, DType::f32);
  EinSum einsum = sum.einsum();
  einsum.labels[0].extent = Extent(count);
  sum.vertex.op = std::move(einsum);
  const Tensor x = full_of(DType::f32, make_shape({count}), value);
  Workers two(2);
  const Tensor result = evaluate(sum.vertex, {x, x}, {}, two);
  const double square = static_cast<double>(value) * static_cast<double>(value);
  EXPECT_LE(largest_error(result, static_cast<double>(count) * square), most_units);
  Workers one(1);
  EXPECT_EQ(evaluate(sum.vertex, {x, x}, {}, one).load<float>(0), result.load<float>(0));
}

}  // namespace
}  // namespace einrel::test
