#include "support/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include "base/error.h"
#include "einsum/reference.h"
#include "kernel/elementwise/block_ops.h"
#include "kernel/evaluate.h"
#include "kernel/registry.h"
#include "support/compare.h"
#include "support/error_bound.h"
#include "support/program.h"
#include "support/random_einsum.h"

namespace einrel::test {
namespace {

/// Whatever kernel is chosen.
std::vector<double> allowed(const RandomEinsum& random, const Tensor& want) {
  return allowed_errors(random, want, DType::f32);
}

class RandomEinsums : public testing::TestWithParam<int> {};

TEST_P(RandomEinsums, AgreeWithTheReference) {
  constexpr int per_instance = 300;
  for (int i = 0; i < per_instance; ++i) {
    const RandomEinsum random = random_einsum(static_cast<std::uint64_t>(GetParam() * per_instance + i));
    ASSERT_NO_THROW(verify(graph_of(random))) << describe(random);
    const Tensor want = evaluate_reference(random.vertex, random.operands, random.scalars);
    const Tensor got = evaluate_alone(random.vertex, random.operands, random.scalars);
    ASSERT_TRUE(agree(got, want, allowed(random, want))) << describe(random);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomEinsums, testing::Range(0, 4));

/// Z = reducer over dimension `along` of X.
RandomEinsum reduction(Reducer reducer, const Tensor& x, std::size_t along) {
  RandomEinsum result;
  EinSum einsum;
  Access access;
  for (std::size_t d = 0; d < x.rank(); ++d) {
    einsum.labels.push_back({std::string(1, static_cast<char>('a' + d)), x.shape()[d]});
    access.indices.push_back({0, {{1, d}}});
    (d == along ? einsum.reduced : einsum.output).push_back(d);
    if (d != along) result.vertex.bound.push_back(x.shape()[d]);
  }
  einsum.reducer = reducer;
  einsum.operands = {access};
  einsum.body = {{{x.dtype(), OperandValue{0}}}};
  result.vertex.dtype = reduced_type(reducer, x.dtype());
  result.vertex.op = einsum;
  result.operands = {x};
  result.scalars["s"] = 0;
  return result;
}

/// Rising from row to row and along each row, so that the largest value so far keeps changing; floats
/// near 1, so that no product of some of them overflows where that of all does not.
Tensor rising(DType dtype, std::int64_t rows, std::int64_t columns) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const std::int64_t at = i / columns + i % columns;
    values.push_back(is_float(dtype) ? 0.5 + std::sqrt(static_cast<double>(at)) / 50 + 0.01 * static_cast<double>(i % 3)
                                     : static_cast<double>(at / 2));
  }
  return tensor_of(dtype, make_shape({rows, columns}), values);
}

TEST(Reductions, AreRightOverManyBlocksInEveryDirection) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64}) {
    for (const Tensor& x : {rising(dtype, 3, 1700), rising(dtype, 1700, 3), rising(dtype, 520, 520)}) {
      for (int r = 0; r <= static_cast<int>(Reducer::logsumexp); ++r) {
        for (const std::size_t along : {std::size_t{0}, std::size_t{1}}) {
          for (const Tensor& layout : {x, x.permuted({1, 0})}) {
            // One type and one order of the labels are enough for the large one.
            if (x.count() > 100000 && (dtype != DType::f32 || !layout.is_row_major())) continue;
            const RandomEinsum random = reduction(static_cast<Reducer>(r), layout, along);
            const Tensor want = evaluate_reference(random.vertex, random.operands, random.scalars);
            const Tensor got = evaluate_alone(random.vertex, random.operands, random.scalars);
            ASSERT_TRUE(agree(got, want, allowed(random, want))) << describe(random);
          }
        }
      }
    }
  }
}

TEST(Reductions, FindTheFirstNaNInALaterBlock) {
  Tensor x = rising(DType::f32, 1, 2000);
  const float nan = std::nanf("");
  for (const std::size_t at : {std::size_t{1234}, std::size_t{1300}, std::size_t{1999}}) {
    std::memcpy(x.mutable_data() + at * sizeof nan, &nan, sizeof nan);
  }
  for (const Reducer reducer : {Reducer::argmax, Reducer::argmin}) {
    const RandomEinsum random = reduction(reducer, x, 1);
    EXPECT_EQ(values_of(evaluate_alone(random.vertex, random.operands, {})), std::vector<double>{1234});
  }
  for (const Reducer reducer : {Reducer::max, Reducer::min, Reducer::logsumexp, Reducer::sum}) {
    const RandomEinsum random = reduction(reducer, x, 1);
    EXPECT_TRUE(std::isnan(values_of(evaluate_alone(random.vertex, random.operands, {}))[0])) << name_of(reducer);
  }
}

TEST(Reductions, OfManyF32AreRoundedOnce) {
  // A million times 0.1f: summed in f32 one after another this would be 100958.3.
  const std::int64_t count = 1000000;
  const Tensor x = tensor_of(DType::f32, make_shape({count, 1}), std::vector<double>(count, 0.1));
  const double exact = static_cast<double>(0.1F) * static_cast<double>(count);
  const RandomEinsum random = reduction(Reducer::sum, x, 0);
  EXPECT_EQ(values_of(evaluate_alone(random.vertex, random.operands, {}))[0],
            static_cast<double>(static_cast<float>(exact)));
}

TEST(Evaluate, RefusesInputs) {
  Vertex input;
  input.op = Input{};
  EXPECT_THROW(evaluate_alone(input, {}, {}), Bug);
}

TEST(Evaluate, RefusesExtremesOfNothing) {
  const RandomEinsum random = reduction(Reducer::max, tensor_of(DType::f32, make_shape({2, 0}), {}), 1);
  EXPECT_THROW(evaluate_alone(random.vertex, random.operands, {}), Bug);
}

TEST(Evaluate, RefusesIndicesBeyond63Bits) {
  RandomEinsum random = reduction(Reducer::max, tensor_of(DType::f32, make_shape({4}), {1, 2, 3, 4}), 0);
  EinSum einsum = random.einsum();
  einsum.labels[0].extent = Extent(std::int64_t{1} << 33U);
  einsum.operands[0] = {{{0, {{std::int64_t{1} << 31U, 0}}}}, 0.0};  // pad(X[2^31 * a], 0) reaches 2^64 - 2^31
  random.vertex.op = einsum;
  EXPECT_THROW(evaluate_alone(random.vertex, random.operands, {}), UserError);
}

TEST(Evaluate, GivesTheSameBitsEveryTime) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RandomEinsum random = random_einsum(seed);
    const Tensor once = evaluate_alone(random.vertex, random.operands, random.scalars);
    const Tensor again = evaluate_alone(random.vertex, random.operands, random.scalars);
    ASSERT_TRUE(once.count() == 0 ||
                std::memcmp(once.data(), again.data(), static_cast<std::size_t>(once.byte_count())) == 0)
        << describe(random);
  }
}

/// Results are written over what is used for the last time: a product over a factor, the sum over the product.
TEST(ElementWise, TakesNoMoreSlotsThanAreInUseAtOnce) {
  const EinGraph graph = einrel::graph_of("dims i=5000\ninput A[i], B[i], C[i] : bf16\nZ[i] = A[i] * B[i] + C[i]\n");
  const Shape shape{Extent(5000)};
  const ArrayLayout layout{DType::bf16, shape, row_major_strides(shape), true};
  const std::optional<KernelSpec> spec = spec_of(graph.vertices.at(3), {layout, layout, layout}, {});
  ASSERT_TRUE(spec);
  const Choice choice = choose_kernel(*spec);
  ASSERT_EQ(choice.kernel, "blocks");
  constexpr std::int64_t slot = lanes_per_block * sizeof(double);
  EXPECT_EQ(choice.offer.own_bytes, 2 * slot + slot);  // and a block of results
}

}  // namespace
}  // namespace einrel::test
