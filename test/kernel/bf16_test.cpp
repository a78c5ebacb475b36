#include "kernel/products/bf16_pair.h"

// clang-format off: before anything of Highway.
#include "kernel/targets.h"
// clang-format on

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "hwy/targets.h"
#include "kernel/products/pack_ops.h"
#include "kernel/products/packed_plan.h"
#include "kernel/products/tile.h"
#include "support/only_target.h"
#include "support/product_check.h"

namespace einrel::test {
namespace {

using namespace contraction;

/// Multiplies what stands at one position of a dimension.
void scale_at(Tensor& operand, std::size_t dimension, std::int64_t position, double factor) {
  std::vector<double> values = values_of(operand);
  std::int64_t inside = 1;
  for (std::size_t d = dimension + 1; d < operand.shape().size(); ++d) inside *= operand.shape()[d].value();
  const std::int64_t extent = operand.shape()[dimension].value();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (static_cast<std::int64_t>(i) / inside % extent == position) values[i] *= factor;
  }
  operand = tensor_of(operand.dtype(), operand.shape(), values);
}

/// Rows of X that vanish where subnormals are taken for 0, though Y makes up for them.
TEST(Packed, MultipliesBf16BelowTheNormalRangeOnEveryInstructionSet) {
  const std::array<BlockSizes, 2> small{{{28, 32, 64, 32, 1, 0}, {28, 32, 64, 32, 1000, 0}}};
  Random random(7);
  for (int i = 0; i < 25; ++i) {
    const std::int64_t rows = random.one_of(std::array{5, 29, 100, 131});
    const std::int64_t inner = random.one_of(std::array{2, 9, 32, 33, 70, 95});
    const bool rows_first = random.chance(0.5);
    const Layout layout{{rows, random.one_of(std::array{6, 33, 130}), inner},
                        rows_first ? std::vector<std::size_t>{0, 2} : std::vector<std::size_t>{2, 0},
                        random.chance(0.5) ? std::vector<std::size_t>{1, 2} : std::vector<std::size_t>{2, 1},
                        random.chance(0.5) ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{1, 0}};
    RandomEinsum sample = product(layout, DType::bf16);
    if (random.chance(0.5)) sample.vertex.dtype = DType::f32;
    scale_at(sample.operands[0], rows_first ? 0 : 1, random.between(0, rows - 1), 0x1p-130);
    scale_at(sample.operands[1], 0, 0, 0x1p100);
    ASSERT_TRUE(agrees_on_every_instruction_set(sample, [&](const Product& p) {
      const PackedPlan plan = plan_packed(p, random.one_of(small));
      EXPECT_EQ(plan.pairs, bf16_kernels(false) != nullptr);
      return prepare(plan);
    }));
  }
}

/// Matrix units take 16 rows and 32 inner positions at a time.
TEST(Packed, MultipliesBf16InBlocksAndWhatIsLeft) {
  Random random(11);
  for (int i = 0; i < 60; ++i) {
    const bool rows_first = random.chance(0.5);
    const std::int64_t rows = random.one_of(std::array{1, 15, 16, 17, 32, 33, 70});
    const Layout layout{{rows, random.one_of(std::array{15, 16, 17, 33, 100}),
                         random.one_of(std::array{31, 32, 33, 63, 64, 65, 130, 700})},
                        rows_first ? std::vector<std::size_t>{0, 2} : std::vector<std::size_t>{2, 0},
                        random.chance(0.5) ? std::vector<std::size_t>{1, 2} : std::vector<std::size_t>{2, 1},
                        random.chance(0.5) ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{1, 0}};
    RandomEinsum sample = product(layout, DType::bf16);
    if (random.chance(0.5)) sample.vertex.dtype = DType::f32;
    if (random.chance(0.3)) {
      scale_at(sample.operands[0], rows_first ? 0 : 1, random.between(0, rows - 1), 0x1p-130);
      scale_at(sample.operands[1], 0, 0, 0x1p100);
    }
    ASSERT_TRUE(agrees(sample, [](const Product& p) { return prepare(plan_packed(p)); }));
  }
}

TEST(Packed, KeepsInfinitiesOfBf16OutOfOtherElements) {
  for (const std::int64_t inner : {3, 7, 8}) {
    RandomEinsum sample = product({{15, 33, inner}, {0, 2}, {2, 1}, {0, 1}}, DType::bf16);
    scale_at(sample.operands[0], 0, 3, std::numeric_limits<double>::infinity());
    scale_at(sample.operands[1], 1, 5, std::numeric_limits<double>::quiet_NaN());
    EXPECT_TRUE(agrees(sample, [](const Product& p) { return prepare(plan_packed(p)); }));
  }
}

/// What may keep bf16 from being multiplied in pairs: only a test of the plan sees it, since errors may stay small.
TEST(Packed, PairsOnlyWhatThePairsComputeExactly) {
  const RandomEinsum random = product({{30, 40, 20}, {0, 2}, {1, 2}, {0, 1}}, DType::bf16);
  const Product plain = as_product(random, row_major_layout(DType::bf16, random.vertex.bound));
  const bool has_pairs = bf16_kernels(false) != nullptr;
  EXPECT_EQ(plan_packed(plain).pairs, has_pairs);
  Product other = plain;
  other.match.scale = 0.5;
  EXPECT_EQ(plan_packed(other).pairs, has_pairs);
  other.match.scale = -2;  // what was below the normal range might not be afterwards
  EXPECT_FALSE(plan_packed(other).pairs);
  other = plain;
  other.b.factor = 0.7;
  EXPECT_FALSE(plan_packed(other).pairs);
  other = plain;
  other.a.reading.guards.push_back({other.a.reading.quantity, 600});
  EXPECT_EQ(plan_packed(other).pairs, has_pairs);
  other.a.reading.pad = 0.1;
  EXPECT_FALSE(plan_packed(other).pairs);
}

/// One tile of small random numbers, some of them below the normal range if `subnormals`, and what it has to come to.
struct TileSample {
  std::int64_t height;  ///< of the kernel
  std::int64_t lanes;   ///< of the kernel
  std::int64_t slots;
  std::vector<BFloat16Pair> a;  ///< [slot][row]
  std::vector<BFloat16Pair> b;  ///< [slot][lane]
  std::vector<double> sums;     ///< [row][lane]
  std::vector<double> sizes;    ///< of the products, added up
};

double half_of(BFloat16Pair pair, unsigned half) {
  return static_cast<double>(to_float(BFloat16{static_cast<std::uint16_t>(pair >> (16 * half))}));
}

TileSample random_tile(Random& random, std::int64_t height, std::int64_t lanes, std::int64_t slots, bool subnormals) {
  TileSample tile{height, lanes, slots, {}, {}, {}, {}};
  const auto pairs = [&](std::int64_t lines, double factor) {
    std::vector<BFloat16Pair> made;
    for (std::int64_t i = 0; i < slots * lines; ++i) {
      const auto half = [&] {
        return to_bfloat16(static_cast<float>(factor * random_number(random, DType::bf16, false)));
      };
      made.push_back(half().bits | static_cast<BFloat16Pair>(half().bits) << 16U);
    }
    return made;
  };
  tile.a = pairs(height, subnormals ? 0x1p-130 : 1);
  tile.b = pairs(lanes, subnormals ? 0x1p126 : 1);
  for (std::int64_t r = 0; r < height; ++r) {
    for (std::int64_t l = 0; l < lanes; ++l) {
      double sum = 0;
      double size = 0;
      for (std::int64_t s = 0; s < slots; ++s) {
        for (const unsigned half : {0U, 1U}) {
          const double product = half_of(tile.a[static_cast<std::size_t>(s * height + r)], half) *
                                 half_of(tile.b[static_cast<std::size_t>(s * lanes + l)], half);
          sum += product;
          size += std::abs(product);
        }
      }
      tile.sums.push_back(sum);
      tile.sizes.push_back(size);
    }
  }
  return tile;
}

/// A as a kernel reads it (TileKernels::turned).
std::vector<BFloat16Pair> panel_of(const TileSample& tile, bool turned) {
  if (!turned) return tile.a;
  std::vector<BFloat16Pair> panel = tile.a;
  for (std::int64_t s = 0; s < tile.slots / block_side * block_side; ++s) {
    for (std::int64_t r = 0; r < tile.height; ++r) {
      panel[static_cast<std::size_t>((s / block_side * tile.height + r) * block_side + s % block_side)] =
          tile.a[static_cast<std::size_t>(s * tile.height + r)];
    }
  }
  return panel;
}

/// Computes it with fewer rows and lanes stored than there are, onto what is there or over it.
void expect_right(const TileSample& sample, const TileKernels<float, BFloat16Pair>& kernels, std::int64_t rows,
                  std::int64_t lanes, bool accumulate) {
  const std::vector<BFloat16Pair> a = panel_of(sample, kernels.turned);
  constexpr std::int64_t step = 70;
  constexpr float before = 3;
  std::vector<float> z(static_cast<std::size_t>(step * (sample.height + 1)), before);
  std::vector<std::int64_t> z_rows;
  for (std::int64_t r = 0; r < sample.height; ++r) z_rows.push_back(r * step + (accumulate ? r % 3 : 0));
  Tile<float, BFloat16Pair> task;
  task.a = a.data();
  task.b = sample.b.data();
  task.inner = sample.slots;
  task.z = z.data();
  task.z_rows = z_rows.data();
  task.rows = rows;
  task.lanes = lanes;
  task.scale = accumulate ? 0.5F : 1.0F;
  task.accumulate = accumulate;
  task.next_rows = {a.data(), 1, 0};
  const auto vectors = static_cast<std::size_t>(sample.lanes / kernels.vector);
  if (kernels.begin != nullptr) kernels.begin();
  kernels.functions[static_cast<std::size_t>(sample.height - 1)][vectors - 1](task);
  if (kernels.end != nullptr) kernels.end();
  std::vector<float> untouched = z;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t l = 0; l < lanes; ++l) {
      const auto at = static_cast<std::size_t>(r * sample.lanes + l);
      const auto to = static_cast<std::size_t>(z_rows[static_cast<std::size_t>(r)] + l);
      const double want = accumulate ? before + 0.5 * sample.sums[at] : sample.sums[at];
      const double unit = std::numeric_limits<float>::epsilon();
      const double terms = static_cast<double>(2 * sample.slots + 4);
      const double size = sample.sizes[at] + (accumulate ? before : 0);
      ASSERT_NEAR(z[to], want, terms * unit * size + terms * 0x1p-126)
          << kernels.instructions << " " << sample.height << "x" << sample.lanes << " slots " << sample.slots;
      untouched[to] = before;
    }
  }
  EXPECT_EQ(untouched, std::vector<float>(z.size(), before)) << "outside of the result";
}

/// The vectors' kernels also where a matrix unit takes their place.
TEST(Bf16Tiles, AreRightInVectorsAndInAMatrixUnit) {
  Random random(5);
  for (const bool subnormals : {false, true}) {
    // There is no matrix unit for bf16 without vectors for it.
    EXPECT_EQ(bf16_kernels(subnormals) == nullptr, bf16_vector_kernels(subnormals) == nullptr);
    for (const auto* const kernels : {bf16_vector_kernels(subnormals), bf16_kernels(subnormals)}) {
      if (kernels == nullptr) continue;
      for (std::int64_t height = 1; height <= kernels->rows; ++height) {
        for (const std::int64_t vectors : {1, 2}) {
          const auto& of_height = kernels->functions[static_cast<std::size_t>(height - 1)];
          if (of_height[static_cast<std::size_t>(vectors - 1)] == nullptr) continue;
          for (const std::int64_t slots : {1, 2, 15, 16, 17, 50, 64}) {
            const std::int64_t lanes = vectors * kernels->vector;
            const TileSample sample = random_tile(random, height, lanes, slots, subnormals);
            expect_right(sample, *kernels, height, lanes, false);
            expect_right(sample, *kernels, height, lanes, true);
            expect_right(sample, *kernels, random.between(1, height), random.between(1, lanes), random.chance(0.5));
          }
        }
      }
    }
  }
}

/// Every sign, exponent and first bits of a fraction, with what is cut off just below, at and just above a tie.
TEST(NarrowLine, RoundsToBf16AsOneByOneOnEveryInstructionSet) {
  std::vector<float> values;
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    for (const std::uint32_t low : {0x0000U, 0x0001U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      values.push_back(std::bit_cast<float>(high << 16U | low));
    }
  }
  Random random(11);
  for (std::size_t i = values.size() - 1; i > 0; --i) {  // numbers below the normal range beside others
    std::swap(values[i], values[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(i)))]);
  }
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const OnlyTarget only(target);
    for (const std::size_t count : {values.size(), values.size() - 7, std::size_t{40}, std::size_t{15}}) {
      std::vector<BFloat16> narrow(count + 1);
      const std::uint16_t untouched = narrow.back().bits;
      narrow_line(values.data(), static_cast<std::int64_t>(count), narrow.data());
      EXPECT_EQ(narrow.back().bits, untouched) << "behind " << count;
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(narrow[i].bits, to_bfloat16(values[i]).bits) << std::bit_cast<std::uint32_t>(values[i]);
      }
    }
  }
}

}  // namespace
}  // namespace einrel::test
