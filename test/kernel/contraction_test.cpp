#include "kernel/contraction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "einsum/reference.h"
#include "kernel/blas.h"
#include "kernel/evaluate.h"
#include "support/compare.h"
#include "support/random_einsum.h"

namespace einrel::test {
namespace {

Index label_index(std::size_t label) { return {0, {{1, label}}}; }

Access plain_access(const std::vector<std::size_t>& labels) {
  Access access;
  for (const std::size_t label : labels) access.indices.push_back(label_index(label));
  return access;
}

ScalarExpr product_of_two(DType type) {
  return {{{type, OperandValue{0}}, {type, OperandValue{1}}, {type, ApplyBinary{BinaryFunction::multiply}}}};
}

DType computed_in(DType stored) { return stored == DType::f64 ? DType::f64 : DType::f32; }

Vertex vertex_of(EinSum einsum, DType dtype) {
  Vertex vertex;
  vertex.dtype = dtype;
  for (const std::size_t label : einsum.output) vertex.bound.push_back(einsum.labels[label].extent);
  vertex.op = std::move(einsum);
  return vertex;
}

/// Z[output] = sum X[a] * Y[b]: names of labels, and which indices each access has.
RandomEinsum contraction(DType dtype, const std::vector<std::int64_t>& extents, const std::vector<std::size_t>& a,
                         const std::vector<std::size_t>& b, const std::vector<std::size_t>& output) {
  RandomEinsum result;
  EinSum einsum;
  for (std::size_t label = 0; label < extents.size(); ++label) {
    einsum.labels.push_back({std::string(1, static_cast<char>('a' + label)), Extent(extents[label])});
    if (std::find(output.begin(), output.end(), label) == output.end()) einsum.reduced.push_back(label);
  }
  einsum.output = output;
  einsum.reducer = Reducer::sum;
  einsum.operands = {plain_access(a), plain_access(b)};
  einsum.body = product_of_two(computed_in(dtype));
  result.scalars["s"] = 0;
  Random random(7);
  for (const Access& access : einsum.operands) {
    Shape shape;
    for (const Index& index : access.indices) shape.push_back(einsum.labels[index.terms[0].label].extent);
    Tensor tensor(dtype, shape);
    with_stored_type(dtype, [&]<class Stored>() {
      for (std::int64_t i = 0; i < tensor.count(); ++i) {
        const auto value = narrow<Stored>(random.real() * 4 - 2);
        std::memcpy(tensor.mutable_data() + i * static_cast<std::int64_t>(sizeof(Stored)), &value, sizeof(Stored));
      }
    });
    result.operands.push_back(tensor);
  }
  result.vertex = vertex_of(std::move(einsum), dtype);
  return result;
}

/// Operands are at most 3 in magnitude. BLAS sums in f32, and rounding errors hardly ever all point one way, so they
/// stay below epsilon * (number of terms) * (largest term).
testing::AssertionResult is_product(const Tensor& got, const RandomEinsum& random) {
  const EinSum& einsum = random.einsum();
  const Tensor want = evaluate_reference(random.vertex, random.operands, random.scalars);
  double terms = 1;
  for (const std::size_t label : einsum.reduced) terms *= static_cast<double>(einsum.labels[label].extent.value());
  std::vector<double> allowed;
  for (const double value : values_of(want)) {
    allowed.push_back(9 * terms * epsilon(einsum.body.type()) + std::abs(value) * epsilon(want.dtype()));
  }
  return agree(got, want, allowed);
}

testing::AssertionResult contracts_correctly(const RandomEinsum& random) {
  const std::optional<Tensor> got =
      contract(random.vertex, random.einsum(), make_nest(random.einsum(), random.operands));
  if (!got) return testing::AssertionFailure() << "not contracted";
  return is_product(*got, random);
}

TEST(Contraction, HasBlasOnThisMachine) { EXPECT_TRUE(has_blas()); }

TEST(Contraction, MultipliesMatricesOfAnyOrientation) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const auto& a : {std::vector<std::size_t>{0, 1}, {1, 0}}) {
      for (const auto& b : {std::vector<std::size_t>{1, 2}, {2, 1}}) {
        for (const auto& z : {std::vector<std::size_t>{0, 2}, {2, 0}}) {
          const RandomEinsum product = contraction(dtype, {101, 79, 67}, a, b, z);
          EXPECT_TRUE(contracts_correctly(product)) << describe(product);
        }
      }
    }
  }
}

TEST(Contraction, MultipliesMatricesWithVectors) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const auto& matrix : {std::vector<std::size_t>{0, 1}, {1, 0}}) {
      const RandomEinsum product = contraction(dtype, {810, 790}, matrix, {1}, {0});
      EXPECT_TRUE(contracts_correctly(product)) << describe(product);
      const RandomEinsum swapped = contraction(dtype, {810, 790}, {0}, matrix, {1});
      EXPECT_TRUE(contracts_correctly(swapped)) << describe(swapped);
      // A vector for each matrix of a batch, its elements two apart: Z[i,b] = sum[j] X[b,i,j] * Y[j,b].
      const RandomEinsum batch = contraction(dtype, {2, 610, 590}, {0, 1, 2}, {2, 0}, {1, 0});
      EXPECT_TRUE(contracts_correctly(batch)) << describe(batch);
    }
  }
}

TEST(Contraction, TakesNarrowFloatsAndRoundsOnce) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const RandomEinsum product = contraction(dtype, {101, 79, 67}, {0, 1}, {1, 2}, {0, 2});
    EXPECT_TRUE(contracts_correctly(product)) << describe(product);
  }
}

TEST(Contraction, LoopsOverBatchesWhereverTheyStand) {
  // Attention: scores[b,h,s,t] = sum[d] Q[b,s,h,d] * K[b,t,h,d].
  const RandomEinsum scores = contraction(DType::f32, {2, 3, 40, 41, 64}, {0, 2, 1, 4}, {0, 3, 1, 4}, {0, 1, 2, 3});
  EXPECT_TRUE(contracts_correctly(scores)) << describe(scores);
}

TEST(Contraction, AddsUpSeveralReducedLabelsAndOnesOfOneOperandOnly) {
  const RandomEinsum both = contraction(DType::f32, {50, 12, 60, 20}, {1, 0, 3}, {3, 2, 1}, {0, 2});
  EXPECT_TRUE(contracts_correctly(both)) << describe(both);
  const RandomEinsum lonely = contraction(DType::f32, {50, 60, 60, 4}, {0, 1, 3}, {1, 2}, {0, 2});
  EXPECT_TRUE(contracts_correctly(lonely)) << describe(lonely);
}

TEST(Contraction, CutsLongPanelsIntoPieces) {
  for (const auto& extents : {std::vector<std::int64_t>{1100, 20, 30}, {20, 600, 50}, {30, 20, 1100}}) {
    RandomEinsum product = contraction(DType::bf16, extents, {0, 1}, {1, 2}, {0, 2});
    EXPECT_TRUE(contracts_correctly(product)) << describe(product);
  }
}

TEST(Contraction, ReadsMisalignedOperands) {
  RandomEinsum product = contraction(DType::f32, {101, 79, 67}, {0, 1}, {1, 2}, {0, 2});
  const Tensor& aligned = product.operands[0];
  const auto memory = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(aligned.byte_count()) + 1);
  std::memcpy(memory->data() + 1, aligned.data(), static_cast<std::size_t>(aligned.byte_count()));
  product.operands[0] = Tensor(DType::f32, aligned.shape(), aligned.strides(), memory->data() + 1, memory);
  EXPECT_TRUE(contracts_correctly(product)) << describe(product);
}

TEST(Contraction, ConvolvesWithAndWithoutPadding) {
  for (const std::optional<double> pad : {std::optional<double>(), std::optional(0.0), std::optional(1.5)}) {
    // Z[k,y,x] = sum[c,u,v] X[c,2*y+u-1,x+v-1] * W[k,c,u,v] on 8 channels of 17 x 18.
    RandomEinsum conv = contraction(DType::f32, {8, 8, 9, 16, 3, 3}, {1, 2, 3}, {0, 1, 4, 5}, {0, 2, 3});
    EinSum einsum = conv.einsum();
    einsum.labels[0].extent = Extent(60);
    einsum.operands[0].indices[1] = {pad ? -1 : 0, {{2, 2}, {1, 4}}};
    einsum.operands[0].indices[2] = {pad ? -1 : 0, {{1, 3}, {1, 5}}};
    einsum.operands[0].pad = pad;
    Random random(3);
    conv.operands = {random_tensor(random, DType::f32, make_shape({8, pad ? 17 : 19, pad ? 16 : 18}), false),
                     random_tensor(random, DType::f32, make_shape({60, 8, 3, 3}), false)};
    conv.vertex = vertex_of(einsum, DType::f32);
    EXPECT_TRUE(contracts_correctly(conv)) << describe(conv);
  }
}

TEST(Contraction, KeepsNaNAndInfinityWhereTheyBelong) {
  RandomEinsum product = contraction(DType::f32, {100, 80, 70}, {0, 1}, {1, 2}, {0, 2});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  std::memcpy(product.operands[0].mutable_data() + std::size_t{4} * (3 * 80 + 5), &nan, 4);
  std::memcpy(product.operands[0].mutable_data() + std::size_t{4} * (90 * 80 + 7), &infinity, 4);
  std::memset(product.operands[1].mutable_data() + std::size_t{4} * (7 * 70 + 1), 0, 4);  // infinity * 0
  EXPECT_TRUE(contracts_correctly(product)) << describe(product);
}

TEST(Contraction, LeavesOtherThingsAlone) {
  const auto is_contracted = [](const RandomEinsum& random) {
    return contract(random.vertex, random.einsum(), make_nest(random.einsum(), random.operands)).has_value();
  };
  RandomEinsum product = contraction(DType::f32, {100, 80, 70}, {0, 1}, {1, 2}, {0, 2});
  EinSum changed = product.einsum();
  changed.reducer = Reducer::max;
  product.vertex.op = changed;
  EXPECT_FALSE(is_contracted(product));
  changed = contraction(DType::f32, {100, 80, 70}, {0, 1}, {1, 2}, {0, 2}).einsum();
  changed.body.steps[2].op = ApplyBinary{BinaryFunction::subtract};
  product.vertex.op = changed;
  EXPECT_FALSE(is_contracted(product));
  EXPECT_FALSE(is_contracted(contraction(DType::f32, {10, 10, 10}, {0, 1}, {1, 2}, {0, 2}))) << "small";
  EXPECT_FALSE(is_contracted(contraction(DType::f32, {1000, 1000}, {0, 1}, {0, 1}, {0})))
      << "both depend on all labels";
}

/// Sums of products with one or two row, column and inner labels and perhaps a batch, any layouts, windows and padding.
RandomEinsum random_contraction(std::uint64_t seed) {
  Random random(seed);
  RandomEinsum result;
  result.seed = seed;
  result.scalars["s"] = 0;
  EinSum einsum;
  std::array<std::vector<std::size_t>, 2> of_operand;
  const auto add_label = [&](std::int64_t extent, bool in_a, bool in_b, bool reduced) {
    const std::size_t label = einsum.labels.size();
    einsum.labels.push_back({std::string(1, static_cast<char>('a' + label)), Extent(extent)});
    if (in_a) of_operand[0].push_back(label);
    if (in_b) of_operand[1].push_back(label);
    (reduced ? einsum.reduced : einsum.output).push_back(label);
  };
  const auto add_role = [&](bool in_a, bool in_b, bool reduced) {
    const std::int64_t total = random.between(75, 90);
    if (random.chance(0.5)) return add_label(total, in_a, in_b, reduced);
    const std::int64_t part = random.between(2, 9);
    add_label(part, in_a, in_b, reduced);
    add_label((total + part - 1) / part, in_a, in_b, reduced);
  };
  add_role(true, false, false);
  add_role(false, true, false);
  add_role(true, true, true);
  if (random.chance(0.4)) add_label(2, true, true, false);
  if (random.chance(0.1)) add_label(2, false, false, false);
  random.shuffle(einsum.output);
  random.shuffle(einsum.reduced);

  const DType dtype = random.one_of(std::array{DType::f32, DType::f32, DType::f64, DType::bf16});
  for (std::vector<std::size_t>& labels : of_operand) {
    random.shuffle(labels);
    Access access;
    Shape shape;
    for (std::size_t d = 0; d < labels.size(); ++d) {
      access.indices.push_back(label_index(labels[d]));
      shape.push_back(einsum.labels[labels[d]].extent);
    }
    if (random.chance(0.4)) {  // a window: the first two labels of the operand in one dimension
      access.indices[0].terms.push_back({random.between(1, 2), labels[1]});
      shape[0] = Extent(shape[0].value() + 2 * shape[1].value());
    }
    if (random.chance(0.3)) {
      access.indices[0].offset = random.between(-2, 2);
      access.pad = static_cast<double>(random.between(-1, 1));
    }
    result.operands.push_back(random_tensor(random, dtype, shape, false));
    einsum.operands.push_back(access);
  }
  einsum.reducer = Reducer::sum;
  einsum.body = product_of_two(computed_in(dtype));
  result.vertex = vertex_of(std::move(einsum), dtype);
  return result;
}

class RandomContractions : public testing::TestWithParam<int> {};

TEST_P(RandomContractions, AgreeWithTheReference) {
  const RandomEinsum random = random_contraction(static_cast<std::uint64_t>(GetParam()));
  // Not by BLAS where a stride of 0 makes one side independent of its labels.
  EXPECT_TRUE(is_product(evaluate(random.vertex, random.operands, random.scalars), random)) << describe(random);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomContractions, testing::Range(0, 16));

}  // namespace
}  // namespace einrel::test
