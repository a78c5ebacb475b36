#include "einsum/reference.h"
#include "kernel/kernels.h"
#include "support/rounds.h"

// clang-format off: before anything of Highway.
#include "kernel/targets.h"
// clang-format on

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "hwy/targets.h"
#include "kernel/evaluate.h"
#include "kernel/products/direct.h"
#include "kernel/products/dot.h"
#include "kernel/products/packed_plan.h"
#include "kernel/products/split.h"
#include "kernel/products/tile.h"
#include "kernel/workers.h"
#include "support/kernel_check.h"
#include "support/only_target.h"
#include "support/product_check.h"
#include "support/random_join.h"

namespace einrel::test {
namespace {

using namespace contraction;

Reducer reducer_of(Reduce reduce) {
  return reduce == Reduce::sum ? Reducer::sum : reduce == Reduce::max ? Reducer::max : Reducer::min;
}

TEST(Contraction, AgreesWithTheReferenceOnEveryInstructionSet) {
  std::map<std::int64_t, std::map<std::string_view, int>> taken;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const RandomEinsum random = random_join(seed, seed % 10 == 0 ? 100000 : 5000);
    if (!needs_kernel(random.einsum())) continue;
    KernelCheck check(random, {seed % 2 == 0, false});
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
      const OnlyTarget only(target);
      ASSERT_TRUE(check.run(taken[target])) << hwy::TargetName(target);
    }
  }
  for (auto& [target, kernels] : taken) {
    for (const std::string_view kernel : {"packed", "direct", "dot", "windows"}) {
      EXPECT_GT(kernels[kernel], 0) << kernel << " on " << hwy::TargetName(target);
    }
  }
}

TEST(Contraction, ComputesEveryCombinationInEveryType) {
  const Layout layout{{9, 37, 21}, {0, 2}, {1, 2}, {0, 1}};
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64}) {
    for (const auto& [join, reduce] : kernel_combinations) {
      const RandomEinsum random = joining(layout, dtype, join, reducer_of(reduce));
      const RandomEinsum vector = joining({{21, 37}, {1, 0}, {0}, {1}}, dtype, join, reducer_of(reduce));
      EXPECT_TRUE(agrees(random, [](const Product& p) { return prepare(plan_packed(p)); }));
      EXPECT_TRUE(agrees(vector, [](const Product& p) { return prepare(std::get<DotPlan>(plan_dot(p))); }));
    }
  }
}

TEST(Packed, IsRightAtTheEdgesOfAllBlocks) {
  // Blocks as small as they can be, so that extents just below and above their multiples stay small. Parts share the
  // columns in the one case, and not in the other.
  const std::array<BlockSizes, 2> small{{{28, 32, 64, 32, 1, 0}, {28, 32, 64, 32, 1000, 0}}};
  std::size_t sharing = 0;
  std::size_t others = 0;
  std::size_t in_place = 0;
  Random random(1);
  const std::array<std::int64_t, 18> outer{1, 2, 5, 6, 7, 13, 14, 15, 28, 29, 43, 57, 65, 96, 97, 100, 131, 192};
  const std::array<std::int64_t, 18> wide{96,  97,  100, 101, 127, 128, 129, 130, 131,
                                          159, 160, 161, 170, 191, 192, 193, 200, 210};
  const std::array<std::int64_t, 9> inner{2, 7, 8, 9, 15, 16, 17, 33, 70};
  for (int i = 0; i < rounds(200); ++i) {
    const auto order = [&](std::size_t first, std::size_t second) {
      return random.chance(0.5) ? std::vector{first, second} : std::vector{second, first};
    };
    const Layout layout{{random.one_of(outer), random.one_of(random.chance(0.5) ? wide : outer), random.one_of(inner)},
                        order(0, 2),
                        order(2, 1),
                        order(0, 1)};
    const DType dtype = random.one_of(std::array{DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32});
    const Join join = random.chance(0.7) ? Join::multiply : Join::square_difference;
    ASSERT_TRUE(agrees(joining(layout, dtype, join, Reducer::sum), [&](const Product& p) {
      const PackedPlan plan = plan_packed(p, random.one_of(small));
      ++(plan.shared_columns > 0 ? sharing : others);
      if (plan.rows_in_place) ++in_place;
      return prepare(plan);
    }));
  }
  for (const std::size_t count : {sharing, others, in_place}) EXPECT_TRUE(came_up(count, 6)) << count;
}

/// The spec of a sum over j of X[b,i,j] * Y[b,j,k].
KernelSpec product_of(std::int64_t b, std::int64_t i, std::int64_t j, std::int64_t k) {
  EinSum einsum = product({{2, 2, 2, 2}, {0, 1, 2}, {0, 2, 3}, {0, 1, 3}}, DType::f32).einsum();
  const std::vector<std::int64_t> extents{b, i, j, k};
  for (std::size_t l = 0; l < extents.size(); ++l) einsum.labels[l].extent = Extent(extents[l]);
  KernelSpec spec{einsum, {}, row_major_layout(DType::f32, make_shape({b, i, k})), {}};
  spec.operands = {row_major_layout(DType::f32, make_shape({b, i, j})),
                   row_major_layout(DType::f32, make_shape({b, j, k}))};
  return spec;
}

TEST(Packed, IsRightWithPartsOfColumnsAndRowsInPlaceOnEveryInstructionSet) {
  BlockSizes sizes{28, 32, 64, 32, 1000, 1000};
  sizes.in_place_seconds = 0;
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const std::int64_t rows : {13, 14, 15, 28, 57}) {
      for (const std::int64_t columns : {384, 385, 401, 482}) {
        const Layout layout{{rows, columns, 33}, {0, 2}, {2, 1}, {0, 1}};
        ASSERT_TRUE(agrees_on_every_instruction_set(product(layout, dtype), [&](const Product& p) {
          const PackedPlan plan = plan_packed(p, sizes);
          EXPECT_TRUE(plan.rows_in_place);
          EXPECT_LT(plan.part_columns, plan.columns);
          EXPECT_EQ(plan.part_rows, plan.rows);
          return prepare(plan);
        }));
      }
    }
  }
}

TEST(Packed, CutsColumnsOnlyWhereThatGivesPartsEnough) {
  const auto planned = [](std::int64_t rows, std::int64_t inner, std::int64_t columns) {
    const KernelSpec spec = product_of(1, rows, inner, columns);
    return plan_packed(std::get<Product>(contraction::as_product(spec, make_nest(spec))));
  };
  EXPECT_GE(parts(planned(2000, 180, 200)), 8);
  EXPECT_GE(parts(planned(2700, 160, 192)), 8);
  EXPECT_GE(parts(planned(500, 500, 500)), 4);
  EXPECT_GE(parts(planned(333, 515, 217)), 2);
  EXPECT_EQ(parts(planned(32, 64, 256)), 1);  // microseconds
}

TEST(Packed, ReadsRowsInPlaceUnlessTheyWouldEvictOneAnother) {
  const auto plan = [](std::int64_t inner, DType dtype) {
    RandomEinsum random = product({{2, 2, 2}, {0, 2}, {2, 1}, {0, 1}}, dtype);
    EinSum einsum = random.einsum();
    einsum.labels[0].extent = einsum.labels[1].extent = Extent(400);
    einsum.labels[2].extent = Extent(inner);
    random.vertex.op = einsum;
    random.vertex.bound = make_shape({400, 400});
    KernelSpec spec{einsum, {}, row_major_layout(dtype, random.vertex.bound), {}};
    spec.operands = {row_major_layout(dtype, make_shape({400, inner})),
                     row_major_layout(dtype, make_shape({inner, 400}))};
    return plan_packed(std::get<Product>(contraction::as_product(spec, make_nest(spec))));
  };
  EXPECT_EQ(plan(512, DType::f32).rows_in_place, 512);
  EXPECT_EQ(plan(1500, DType::f32).rows_in_place, 1500);
  EXPECT_EQ(plan(300, DType::f64).rows_in_place, 300);
  // Rows a page apart are bound for the same places, where low tiles of older instruction sets find room.
  for (const PackedPlan& collides : {plan(1024, DType::f32), plan(512, DType::f64)}) {
    EXPECT_EQ(collides.rows_in_place.has_value(), collides.tile_rows <= 7) << collides.tile_rows;
  }
  EXPECT_EQ(plan(300, DType::bf16).rows_in_place, std::nullopt);
}

TEST(Packed, IsRightWithAnyNumberOfBlocksOfSharedColumns) {
  std::set<std::vector<std::int64_t>> taken;  // buffers, blocks modulo 2, and whether columns are cut
  Random random(3);
  const auto order = [&](std::size_t first, std::size_t second) {
    return random.chance(0.5) ? std::vector{first, second} : std::vector{second, first};
  };
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const std::int64_t shared_bytes : {std::int64_t{8} << 20, std::int64_t{15000}, std::int64_t{8192}}) {
      for (const std::int64_t blocks : {2, 3}) {
        const std::int64_t inner = blocks * 64 / static_cast<std::int64_t>(size_of(dtype)) - random.between(0, 3);
        const Layout layout{
            {random.between(145, 150), random.between(145, 150), inner}, order(0, 2), order(1, 2), {0, 1}};
        ASSERT_TRUE(agrees(product(layout, dtype), [&](const Product& p) {
          BlockSizes sizes{28, 32, 64, 32, 1, 0};
          sizes.shared_bytes = shared_bytes;
          const PackedPlan plan = plan_packed(p, sizes);
          EXPECT_GT(plan.shared_columns, 0);
          EXPECT_LE(contraction::shared_bytes(plan), shared_bytes);
          taken.insert({plan.shared_buffers, blocks % 2, plan.columns > plan.shared_columns ? 1 : 0});
          return prepare(plan);
        }));
      }
    }
  }
  const std::set<std::vector<std::int64_t>> all{{2, 0, 0}, {2, 1, 0}, {1, 0, 0}, {1, 1, 0}, {1, 0, 1}, {1, 1, 1}};
  EXPECT_EQ(taken, all);
}

TEST(Packed, ReadsSeveralLoopsPerRoleInAnyOrder) {
  const std::array<BlockSizes, 2> small{{{28, 32, 64, 32, 1, 0}, {28, 32, 64, 32, 1000, 0}}};
  Random random(2);
  for (int i = 0; i < 60; ++i) {
    // Two labels each for rows, columns and inner positions, and sometimes a batch.
    Layout layout{{3, 7, 5, 9, 4, 6, 2}, {0, 1, 4, 5}, {2, 3, 4, 5}, {0, 1, 2, 3}};
    if (random.chance(0.3)) {
      for (std::vector<std::size_t>* labels : {&layout.x, &layout.y, &layout.z}) labels->push_back(6);
    } else {
      layout.extents.pop_back();
    }
    for (std::vector<std::size_t>* labels : {&layout.x, &layout.y, &layout.z}) random.shuffle(*labels);
    for (const DType dtype : {DType::f32, DType::bf16}) {
      ASSERT_TRUE(agrees(product(layout, dtype),
                         [&](const Product& p) { return prepare(plan_packed(p, random.one_of(small))); }));
    }
  }
}

TEST(Direct, IsRightForAllSmallExtents) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (std::int64_t rows = 1; rows <= 30; ++rows) {
      for (const std::int64_t columns : {2, 3, 4, 5, 8, 9, 16, 17, 31, 33, 64, 100}) {
        const Layout layout{{3, rows, columns, 4}, {0, 1, 3}, {0, 3, 2}, {0, 1, 2}};
        for (const bool fetches : {false, true}) {
          ASSERT_TRUE(agrees(product(layout, dtype), [&](const Product& p) {
            DirectPlan plan = std::get<DirectPlan>(plan_direct(p));
            EXPECT_FALSE(plan.fetches);
            plan.fetches = fetches;
            return prepare(std::move(plan));
          }));
        }
      }
    }
  }
}

TEST(Direct, IsRightWhereTheLastOfSeveralBlocksOfLanesIsShorter) {
  const RandomEinsum random = product({{130, 300, 64}, {0, 2}, {2, 1}, {0, 1}}, DType::f64);
  EXPECT_TRUE(agrees(random, [](const Product& product) {
    DirectPlan plan = std::get<DirectPlan>(plan_direct(product));
    EXPECT_GT(plan.lanes.extent % plan.lane_block, 0);
    EXPECT_LT(plan.lane_block, plan.lanes.extent);
    return prepare(std::move(plan));
  }));
}

/// Extents that leave inner positions and lanes over from blocks.
TEST(Direct, StreamsOneOrTwoRowsTimesALargeMatrixOnEveryInstructionSet) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const std::int64_t rows : {1, 2}) {
      for (const std::vector<std::size_t>& x : {std::vector<std::size_t>{0, 2}, {2, 0}}) {
        const RandomEinsum random = product({{rows, 717, 533}, x, {2, 1}, {0, 1}}, dtype);
        ASSERT_TRUE(agrees_on_every_instruction_set(random, [](const Product& p) {
          DirectPlan plan = std::get<DirectPlan>(plan_direct(p));
          EXPECT_TRUE(plan.streams);
          return prepare(std::move(plan));
        }));
      }
    }
  }
}

TEST(Direct, RunsAlongABatchThatIsInnermostEverywhere) {
  for (const std::int64_t batch : {2, 15, 16, 33, 500}) {
    const Layout layout{{batch, 5, 7, 6}, {1, 3, 0}, {3, 2, 0}, {1, 2, 0}};
    EXPECT_TRUE(agrees(product(layout, DType::f32),
                       [](const Product& p) { return prepare(std::get<DirectPlan>(plan_direct(p))); }));
  }
}

/// Products with signs of zeros, infinities and NaN: no sum, to which -0 would be lost, comes in between.
TEST(Direct, GivesEveryBitOfOuterProducts) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::array special{-0.0F, 0.0F, infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), -1e-30F};
  Random random(3);
  for (const std::int64_t rows : {2, 6, 7, 8, 15, 40}) {
    for (const std::int64_t columns : {2, 16, 31, 64, 100, 300}) {
      for (const std::vector<std::size_t>& x : {std::vector<std::size_t>{0, 1}, {1, 0}}) {
        RandomEinsum outer =
            joining({{3, rows, columns}, x, {0, 2}, {0, 1, 2}}, DType::f32, Join::multiply, std::nullopt);
        for (Tensor& operand : outer.operands) {
          auto* const values = reinterpret_cast<float*>(operand.mutable_data());
          for (std::int64_t i = 0; i < element_count(operand.shape()); ++i) {
            if (random.chance(0.3)) values[i] = random.one_of(special);
          }
        }
        Tensor result(DType::f32, outer.vertex.bound);
        const KernelSpec spec = kernel_spec(outer, layout_of(result), false);
        const auto offer = direct_kernel().offer(spec, make_nest(spec));
        ASSERT_TRUE(std::holds_alternative<Offer>(offer)) << std::get<Refusal>(offer).reason;
        const std::vector<const std::byte*> operands = data_of(outer.operands);
        Workers(1).run(std::get<Offer>(offer).prepare(), {operands.data(), result.mutable_data()});
        const Tensor want = evaluate_reference(outer.vertex, outer.operands, outer.scalars);
        const auto bits = [](const Tensor& tensor) {
          std::vector<float> values(static_cast<std::size_t>(element_count(tensor.shape())));
          std::memcpy(values.data(), tensor.data(), values.size() * sizeof(float));
          std::vector<std::uint32_t> found;
          for (const float value : values) found.push_back(value != value ? 1 : std::bit_cast<std::uint32_t>(value));
          return found;
        };
        ASSERT_EQ(bits(result), bits(want)) << describe(outer);
      }
    }
  }
}

TEST(Dot, IsRightForAnyNumberOfRowsColumnsAndLengths) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32}) {
    for (const std::int64_t rows : {1, 7, 8, 9, 19}) {
      for (std::int64_t columns = 1; columns <= 8; ++columns) {
        for (const std::int64_t length : {2, 15, 16, 33, 100}) {
          for (const auto& y : {std::vector<std::size_t>{1, 2}, {2, 1}}) {
            const Layout layout{{rows, columns, length}, {0, 2}, y, {0, 1}};
            ASSERT_TRUE(agrees(product(layout, dtype),
                               [](const Product& p) { return prepare(std::get<DotPlan>(plan_dot(p))); }));
          }
        }
      }
    }
  }
}

/// The last piece of a narrow product is none itself: its result is f32, its rows are many, and it has no batch.
TEST(Split, TakesEachPieceInOneStage) {
  for (const std::int64_t length : {15984, 15990, 15999, 16000}) {
    RandomEinsum random;
    random.vertex = product({{2, 2, 2}, {0, 2}, {2, 1}, {0, 1}}, DType::f16).vertex;
    EinSum einsum = random.einsum();
    einsum.labels[0].extent = Extent(450);
    einsum.labels[1].extent = Extent(128);
    einsum.labels[2].extent = Extent(length);
    random.vertex.op = einsum;
    random.vertex.bound = make_shape({450, 128});
    KernelSpec spec{einsum, {}, row_major_layout(DType::f16, random.vertex.bound), {}};
    spec.operands = {row_major_layout(DType::f16, make_shape({450, length})),
                     row_major_layout(DType::f16, make_shape({length, 128}))};
    const Offer offer = std::get<Offer>(packed_kernel().offer(spec, make_nest(spec)));
    EXPECT_NO_THROW(offer.prepare()) << offer.path;
  }
}

TEST(Split, AddsUpPiecesOfLongReductions) {
  for (const std::int64_t length : {128, 64 * 5, 64 * 5 + 13, 1000}) {
    for (const DType dtype : {DType::f32, DType::i64}) {
      const RandomEinsum random = product({{3, 5, length, 2}, {3, 0, 2}, {2, 3, 1}, {0, 1, 3}}, dtype);
      EXPECT_TRUE(agrees(random, [](const Product& whole) {
        const Split cut = *split(whole, {.pieces = 5});
        EXPECT_GE(cut.pieces, 2);
        std::optional<PreparedKernel> last;
        if (cut.last) last = prepare(plan_packed(*cut.last));
        return prepare_split(cut, prepare(plan_packed(cut.equal)), std::move(last));
      }));
    }
  }
}

TEST(Split, AddsUpManyResultsInSeveralParts) {
  const Layout flat{{301, 121, 260}, {0, 2}, {2, 1}, {0, 1}};
  const Layout batched{{2, 151, 121, 260}, {0, 1, 3}, {3, 2, 0}, {0, 2, 1}};
  for (const RandomEinsum& random : {product(flat, DType::f16), product(batched, DType::f32)}) {
    EXPECT_TRUE(agrees(random, [](const Product& whole) {
      const Split cut = *split(whole, {.pieces = 4});
      EXPECT_GE(cut.pieces, 2);
      std::optional<PreparedKernel> last;
      if (cut.last) last = prepare(plan_packed(*cut.last));
      PreparedKernel prepared = prepare_split(cut, prepare(plan_packed(cut.equal)), std::move(last));
      EXPECT_GT(prepared.stages.back().parts, 1);
      return prepared;
    }));
  }
}

TEST(Split, IsOfferedWhereOnlyTheReductionIsLong) {
  RandomEinsum random;
  random.vertex = product({{16, 16, 2}, {0, 2}, {2, 1}, {0, 1}}, DType::f32).vertex;
  EinSum einsum = random.einsum();
  einsum.labels[2].extent = Extent(1000000);
  random.vertex.op = einsum;
  KernelSpec spec{einsum, {}, row_major_layout(DType::f32, random.vertex.bound), {}};
  spec.operands = {row_major_layout(DType::f32, make_shape({16, 1000000})),
                   row_major_layout(DType::f32, make_shape({1000000, 16}))};
  for (const KernelInfo& kernel : {packed_kernel(), direct_kernel()}) {
    const Offer offer = std::get<Offer>(kernel.offer(spec, make_nest(spec)));
    const PreparedKernel prepared = offer.prepare();
    EXPECT_GT(offer.shared_bytes, 0) << offer.path;
    ASSERT_EQ(prepared.stages.size(), 2U) << offer.path;
    EXPECT_GE(prepared.stages[0].parts, 4) << offer.path;
  }
}

/// Threads that shared columns would wait for one another after each of a hundred blocks.
TEST(Split, IsOfferedWhereColumnsWouldBeSharedOftenAndResultsAreFew) {
  const auto offer = [](std::int64_t rows, std::int64_t inner) {
    RandomEinsum random = product({{2, 2, 2}, {0, 2}, {2, 1}, {0, 1}}, DType::f64);
    EinSum einsum = random.einsum();
    einsum.labels[0].extent = einsum.labels[1].extent = Extent(rows);
    einsum.labels[2].extent = Extent(inner);
    random.vertex.op = einsum;
    random.vertex.bound = make_shape({rows, rows});
    KernelSpec spec{einsum, {}, row_major_layout(DType::f64, random.vertex.bound), {}};
    spec.operands = {row_major_layout(DType::f64, make_shape({rows, inner})),
                     row_major_layout(DType::f64, make_shape({inner, rows}))};
    return std::get<Offer>(packed_kernel().offer(spec, make_nest(spec)));
  };
  for (const std::int64_t inner : {24000, 24001}) {
    const Offer long_sums = offer(500, inner);
    EXPECT_EQ(long_sums.shared_bytes, 4 * 500 * 500 * 8) << long_sums.path;
    const PreparedKernel prepared = long_sums.prepare();
    ASSERT_EQ(prepared.stages.size(), 2U) << long_sums.path;
    EXPECT_GE(prepared.stages[0].parts, 4) << long_sums.path;
  }
  EXPECT_GT(offer(500, 2000).prepare().stages.size(), 2U);    // not often
  EXPECT_GT(offer(2000, 24000).prepare().stages.size(), 2U);  // too many results
}

/// Every row of X and every column of Y is the same one.
RandomEinsum of_equal_rows(std::int64_t rows, std::int64_t columns, std::int64_t inner, Join join, Reducer reducer) {
  RandomEinsum random = joining({{rows, columns, inner}, {0, 2}, {1, 2}, {0, 1}}, DType::f32, join, reducer);
  for (Tensor& operand : random.operands) {
    for (std::int64_t r = 1; r < operand.shape()[0].value(); ++r) {
      std::memcpy(operand.mutable_data() + r * inner * 4, operand.data(), static_cast<std::size_t>(inner) * 4);
    }
  }
  return random;
}

/// Z[a,b] of Y[b,c] becomes that of Y[c,b]: columns side by side.
void transpose_y(RandomEinsum& random) {
  EinSum einsum = random.einsum();
  std::swap(einsum.operands[1].indices[0], einsum.operands[1].indices[1]);
  random.vertex.op = einsum;
  random.operands[1] = random.operands[1].permuted({1, 0}).row_major();
}

/// With every kernel that there is for it.
void expect_equal_elements(const RandomEinsum& random) {
  for (const KernelInfo& kernel : {packed_kernel(), direct_kernel(), dot_kernel(), windows_kernel()}) {
    const KernelSpec spec = kernel_spec(random, row_major_layout(DType::f32, random.vertex.bound), false);
    const std::variant<Offer, Refusal> answer = kernel.offer(spec, make_nest(spec));
    if (std::holds_alternative<Refusal>(answer)) continue;
    Tensor result(DType::f32, random.vertex.bound);
    const std::vector<const std::byte*> operands = data_of(random.operands);
    Random order(3);
    ASSERT_TRUE(run_guarded(std::get<Offer>(answer).prepare(), {operands.data(), result.mutable_data()}, order));
    const std::vector<double> values = values_of(result);
    EXPECT_EQ(values, std::vector<double>(values.size(), values[0])) << kernel.name << "\n" << describe(random);
  }
}

TEST(Contraction, GivesTheSameBitsWhereverARowOrColumnStands) {
  for (const auto& [join, reduce] : kernel_combinations) {
    if (reduce != Reduce::sum) continue;
    for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{37, 77}, {19, 7}, {3, 130}}) {
      RandomEinsum random = of_equal_rows(rows, columns, 450, join, Reducer::mean);
      expect_equal_elements(random);
      transpose_y(random);
      expect_equal_elements(random);
    }
  }
}

/// Puts numbers into an operand at random places.
void scatter(Random& random, Tensor& operand, const std::vector<float>& numbers) {
  for (const float number : numbers) {
    std::memcpy(operand.mutable_data() + random.between(0, operand.count() - 1) * 4, &number, 4);
  }
}

TEST(Contraction, KeepsNaNAndInfinitiesInExtremesWhereTheyBelong) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::vector<float>> cases{
      {infinity, infinity, infinity}, {-infinity, -infinity}, {infinity, -infinity}, {nan}, {nan, infinity, -infinity}};
  Random random(4);
  for (const auto& [join, reduce] : kernel_combinations) {
    // Once with so many rows and columns that parts share the columns.
    const bool large = join == Join::add && reduce == Reduce::max;
    const std::vector<std::int64_t> extents{large ? 43 : 15, large ? 97 : 33, 20};
    for (const std::vector<float>& in_x : cases) {
      for (const std::vector<float>& in_y : cases) {
        RandomEinsum sample = joining({extents, {0, 2}, {1, 2}, {0, 1}}, DType::f32, join, reducer_of(reduce));
        scatter(random, sample.operands[0], in_x);
        scatter(random, sample.operands[1], in_y);
        ASSERT_TRUE(agrees(sample, [](const Product& p) { return prepare(plan_packed(p, {28, 32, 64, 32, 1, 0})); }));
      }
    }
  }
}

TEST(Packed, SharesNoColumnsOfWideProducts) {
  const auto planned = [](std::int64_t rows, std::int64_t inner, std::int64_t columns) {
    const KernelSpec spec = product_of(1, rows, inner, columns);
    return plan_packed(std::get<Product>(contraction::as_product(spec, make_nest(spec))));
  };
  for (const std::int64_t rows : {100, 256, 500}) {
    const PackedPlan plan = planned(rows, 1024, 2752);  // in either orientation
    EXPECT_TRUE(plan.shared_columns == 0 || plan.columns <= 4 * plan.rows) << rows;
  }
  EXPECT_GT(planned(1024, 1024, 1024).shared_columns, 0);
}

TEST(Packed, GivesFewThreadsAboutAsMuchEach) {
  int shared = 0;
  for (std::int64_t rows = 420; rows <= 2500; rows += 40) {
    const KernelSpec spec = product_of(1, rows, 600, 600);
    const PackedPlan plan = plan_packed(std::get<Product>(contraction::as_product(spec, make_nest(spec))));
    if (plan.shared_columns == 0) continue;
    ++shared;
    for (const std::int64_t threads : {2, 4}) {
      std::vector<std::int64_t> load(static_cast<std::size_t>(threads));
      for (std::int64_t begin = 0; begin < plan.rows; begin += plan.part_rows) {
        *std::min_element(load.begin(), load.end()) += std::min(plan.part_rows, plan.rows - begin);
      }
      const double fair = static_cast<double>(plan.rows) / static_cast<double>(threads);
      const auto most = static_cast<double>(*std::max_element(load.begin(), load.end()));
      EXPECT_LE(most, 1.2 * fair + static_cast<double>(plan.tile_rows)) << rows << " rows, " << threads << " threads";
    }
  }
  EXPECT_GE(shared, 40);  // of 53
}

TEST(Direct, LeavesSeveralPartsOfALargeMatrixForOneRow) {
  for (const auto& [matrices, inner, lanes] : std::vector<std::array<std::int64_t, 3>>{
           {1, 4096, 4096}, {1, 511, 16384}, {2, 4096, 4096}, {9, 1024, 1024}, {1, 4096, 40000}}) {
    const KernelSpec spec = product_of(matrices, 1, inner, lanes);
    const Offer offer = std::get<Offer>(direct_kernel().offer(spec, make_nest(spec)));
    EXPECT_GE(offer.prepare().stages.front().parts, 4) << matrices << " x " << inner << " x " << lanes << offer.path;
  }
}

ScalarStep step(decltype(ScalarStep::op) op) { return {DType::f32, std::move(op)}; }

std::variant<Match, std::string> match_of(std::vector<ScalarStep> steps, Reducer reducer = Reducer::sum) {
  EinSum einsum = product({{2, 2, 4}, {0, 2}, {1, 2}, {0, 1}}, DType::f32).einsum();
  einsum.body.steps = std::move(steps);
  einsum.reducer = reducer;
  return match(einsum, {{"s", 0.25}});
}

TEST(Match, FindsProductsWithFactors) {
  const ScalarStep x = step(OperandValue{0});
  const ScalarStep y = step(OperandValue{1});
  const ScalarStep two = step(Constant{2.0});
  const ScalarStep s = step(ScalarValue{"s"});
  const ScalarStep times = step(ApplyBinary{BinaryFunction::multiply});
  const auto in_front = std::get<Match>(match_of({two, x, times, y, times}));
  EXPECT_EQ(in_front.factors, (std::array<double, 2>{2, 1}));
  EXPECT_EQ(in_front.scale, 1);
  const auto behind = std::get<Match>(match_of({y, x, times, s, times}));
  EXPECT_EQ(behind.operands, (std::array<std::size_t, 2>{1, 0}));
  EXPECT_EQ(behind.scale, 0.25);
  const auto negative = std::get<Match>(match_of({x, step(ApplyUnary{UnaryFunction::negate}), y, times}));
  EXPECT_EQ(negative.factors, (std::array<double, 2>{1, 1}));
  EXPECT_EQ(negative.scale, -1);
  EXPECT_EQ(std::get<Match>(match_of({x, y, times}, Reducer::mean)).scale, 0.25);
}

TEST(Match, FindsDistancesHoweverTheyAreWritten) {
  const ScalarStep x = step(OperandValue{0});
  const ScalarStep y = step(OperandValue{1});
  const ScalarStep minus = step(ApplyBinary{BinaryFunction::subtract});
  const std::vector<std::vector<ScalarStep>> squares{
      {x, y, minus, step(ApplyUnary{UnaryFunction::sq})},
      {x, y, minus, x, y, minus, step(ApplyBinary{BinaryFunction::multiply})},
      {x, y, minus, step(Constant{2.0}), step(ApplyBinary{BinaryFunction::power})}};
  for (const std::vector<ScalarStep>& steps : squares) {
    EXPECT_EQ(std::get<Match>(match_of(steps)).combination, (Combination{Join::square_difference, Reduce::sum}));
  }
  EXPECT_EQ(std::get<Match>(match_of({x, y, minus, step(ApplyUnary{UnaryFunction::abs})}, Reducer::max)).combination,
            (Combination{Join::absolute_difference, Reduce::max}));
}

TEST(Match, SaysWhyThereIsNone) {
  const ScalarStep x = step(OperandValue{0});
  const ScalarStep y = step(OperandValue{1});
  const ScalarStep times = step(ApplyBinary{BinaryFunction::multiply});
  const auto reason = [](const std::variant<Match, std::string>& found) { return std::get<std::string>(found); };
  EXPECT_EQ(reason(match_of({x, y, times}, Reducer::prod)), "it reduces by prod");
  EXPECT_EQ(reason(match_of({x, x, times})), "it reads only one operand");
  EXPECT_EQ(reason(match_of({x, y, times, step(Constant{2.0}), times}, Reducer::max)),
            "it has a factor beside its operands");
  EXPECT_EQ(reason(match_of({x, step(ApplyUnary{UnaryFunction::exp}), y, times})),
            "its body is no x*y, x+y, max(x,y), min(x,y), abs(x-y) or sq(x-y)");
  EXPECT_EQ(reason(match_of({x, y, step(ApplyBinary{BinaryFunction::add})})),
            "its join and reduction have no kernels together");
}

}  // namespace
}  // namespace einrel::test
