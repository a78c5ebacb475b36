#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "support/kernel_check.h"

namespace einrel::test {
namespace {

// Every einsum of two operands with at most four labels of extents 1 to 3, up to the names of the labels: a label is
// a role (which of A, B and Z it stands in) and an extent, an einsum a multiset of up to four of these. The order of
// dimensions, dtypes, layouts and values are random.

struct Kind {
  bool a = false;
  bool b = false;
  bool z = false;
  std::int64_t extent = 1;
};

constexpr std::size_t role_count = 8;
constexpr std::size_t kind_count = 3 * role_count;

Kind kind_of(std::size_t i) {
  const std::size_t role = i % role_count;
  return {(role & 1U) != 0, (role & 2U) != 0, (role & 4U) != 0, static_cast<std::int64_t>(i / role_count) + 1};
}

/// The next multiset of as many kinds, as an ascending sequence; false after the last.
bool advance(std::vector<std::size_t>& kinds) {
  for (std::size_t i = kinds.size(); i-- > 0;) {
    if (kinds[i] + 1 == kind_count) continue;
    std::fill(kinds.begin() + static_cast<std::ptrdiff_t>(i), kinds.end(), kinds[i] + 1);
    return true;
  }
  return false;
}

/// Z = reducer function(A, B).
RandomEinsum einsum_of(const std::vector<std::size_t>& kinds, Reducer reducer, BinaryFunction function,
                       std::uint64_t seed) {
  Random random(seed);
  RandomEinsum result;
  result.seed = seed;
  result.scalars["s"] = 0;
  EinSum einsum;
  std::array<std::vector<std::size_t>, 2> dimensions;
  for (std::size_t label = 0; label < kinds.size(); ++label) {
    const Kind kind = kind_of(kinds[label]);
    einsum.labels.push_back({std::string(1, static_cast<char>('i' + label)), Extent(kind.extent)});
    if (kind.a) dimensions[0].push_back(label);
    if (kind.b) dimensions[1].push_back(label);
    (kind.z ? einsum.output : einsum.reduced).push_back(label);
  }
  random.shuffle(einsum.output);
  random.shuffle(einsum.reduced);
  if (!einsum.reduced.empty() || random.chance(0.2)) einsum.reducer = reducer;
  const DType type = random.one_of(std::array{DType::f32, DType::f32, DType::f64, DType::i32, DType::i64});
  const DType stored = type == DType::f32 && random.chance(0.3) ? DType::bf16 : type;
  for (std::size_t operand = 0; operand < 2; ++operand) {
    random.shuffle(dimensions[operand]);
    Access access;
    Shape shape;
    for (const std::size_t label : dimensions[operand]) {
      access.indices.push_back({0, {{1, label}}});
      shape.push_back(einsum.labels[label].extent);
    }
    result.operands.push_back(random_tensor(random, stored, shape, false));
    einsum.operands.push_back(std::move(access));
    einsum.body.steps.push_back({type, OperandValue{operand}});
  }
  einsum.body.steps.push_back({type, ApplyBinary{function}});
  result.vertex.dtype = einsum.reducer ? reduced_type(*einsum.reducer, type) : type;
  for (const std::size_t label : einsum.output) result.vertex.bound.push_back(einsum.labels[label].extent);
  result.vertex.op = std::move(einsum);
  return result;
}

/// By the number of labels.
class SmallScope : public testing::TestWithParam<std::size_t> {};

TEST_P(SmallScope, EveryBinaryEinsumAgreesWithTheReference) {
  constexpr std::uint64_t most = 1U << 20U;
  std::map<std::string_view, int> taken;
  std::vector<std::size_t> kinds(GetParam(), 0);
  std::uint64_t seed = GetParam() * most;
  do {
    const RandomEinsum product = einsum_of(kinds, Reducer::sum, BinaryFunction::multiply, seed++);
    ASSERT_TRUE(KernelCheck(product, {seed % 2 == 0, false, seed % 3 == 0}).run(taken));
    Random draw(seed);
    const auto reducer = static_cast<Reducer>(draw.between(0, static_cast<std::int64_t>(Reducer::logsumexp)));
    using B = BinaryFunction;
    const auto function = draw.one_of(std::array{B::multiply, B::add, B::subtract, B::maximum});
    const RandomEinsum other = einsum_of(kinds, reducer, function, seed++);
    const bool accumulate = continuation(other.einsum().reducer).has_value() && draw.chance(0.5);
    ASSERT_TRUE(KernelCheck(other, {draw.chance(0.5), accumulate, draw.chance(0.3)}).run(taken));
  } while (advance(kinds));
  EXPECT_EQ(static_cast<std::uint64_t>(taken["blocks"]), seed - GetParam() * most);
}

INSTANTIATE_TEST_SUITE_P(Labels, SmallScope, testing::Range(std::size_t{0}, std::size_t{5}));

}  // namespace
}  // namespace einrel::test
