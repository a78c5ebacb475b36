#include "kernel/view.h"

#include <gtest/gtest.h>

#include "einsum/graph/vertex_facts.h"
#include "einsum/reference.h"
#include "support/compare.h"
#include "support/evaluate.h"
#include "support/random_einsum.h"

namespace einrel::test {
namespace {

/// A view of labels with these extents; groups as positions of labels.
Vertex view_of(DType dtype, const std::vector<std::int64_t>& extents, std::vector<std::vector<std::size_t>> from,
               std::vector<std::vector<std::size_t>> to) {
  View view{{}, std::move(from), std::move(to)};
  for (const std::int64_t extent : extents) {
    view.labels.push_back({std::string(1, static_cast<char>('a' + view.labels.size())), Extent(extent)});
  }
  Vertex vertex;
  vertex.dtype = dtype;
  for (const auto& group : view.to) {
    std::int64_t extent = 1;
    for (const std::size_t label : group) extent *= extents[label];
    vertex.bound.emplace_back(extent);
  }
  vertex.op = view;
  return vertex;
}

Tensor counting(const Shape& shape) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < element_count(shape); ++i) values.push_back(static_cast<double>(i));
  return tensor_of(DType::i32, shape, values);
}

TEST(Views, SplitAndMergeInPlace) {
  const Tensor x = counting(make_shape({4, 6}));
  const Vertex split = view_of(DType::i32, {4, 2, 3}, {{0}, {1, 2}}, {{0}, {1}, {2}});
  const Tensor halves = evaluate_alone(split, {x}, {});
  EXPECT_EQ(halves.data(), x.data());
  EXPECT_EQ(values_of(halves), values_of(x));
  const Vertex merge = view_of(DType::i32, {4, 2, 3}, {{0}, {1}, {2}}, {{0, 1, 2}});
  const Tensor flat = evaluate_alone(merge, {halves}, {});
  EXPECT_EQ(flat.data(), x.data());
  EXPECT_EQ(flat.shape(), make_shape({24}));
}

TEST(Views, PermuteAndSplitTransposedTensorsInPlace) {
  const Tensor x = counting(make_shape({4, 6})).permuted({1, 0});
  const Vertex split = view_of(DType::i32, {2, 3, 4}, {{0, 1}, {2}}, {{2}, {1}, {0}});
  const Tensor got = evaluate_alone(split, {x}, {});
  EXPECT_EQ(got.data(), x.data());
  EXPECT_TRUE(agree(got, evaluate_reference(split, {x}, {}), {}));
}

TEST(Views, CopyWhenStridesDoNotContinueEachOther) {
  const Tensor x = counting(make_shape({4, 6}));
  const Vertex merge = view_of(DType::i32, {4, 6}, {{0}, {1}}, {{1, 0}});
  const Tensor got = evaluate_alone(merge, {x}, {});
  EXPECT_NE(got.data(), x.data());
  EXPECT_TRUE(agree(got, evaluate_reference(merge, {x}, {}), {}));
}

TEST(Views, KeepTheirElementsAlive) {
  Tensor view;
  {
    const Tensor x = counting(make_shape({4, 6}));
    view = evaluate_alone(view_of(DType::i32, {4, 6}, {{0}, {1}}, {{0, 1}}), {x}, {});
  }
  EXPECT_EQ(values_of(view)[23], 23);
}

TEST(Views, AgreeWithTheReferenceOnRandomGroupsAndLayouts) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    std::vector<std::int64_t> extents;
    for (std::int64_t i = random.between(0, 5); i > 0; --i)
      extents.push_back(random.chance(0.05) ? 0 : random.between(1, 4));
    const auto random_groups = [&](bool shuffled) {
      std::vector<std::size_t> labels(extents.size());
      for (std::size_t label = 0; label < labels.size(); ++label) labels[label] = label;
      if (shuffled) random.shuffle(labels);
      std::vector<std::vector<std::size_t>> groups;
      for (const std::size_t label : labels) {
        if (groups.empty() || random.chance(0.5)) groups.emplace_back();
        groups.back().push_back(label);
      }
      return groups;
    };
    const auto from = random_groups(random.chance(0.5));
    const DType dtype = random.one_of(all_dtypes);
    const Vertex vertex = view_of(dtype, extents, from, random_groups(random.chance(0.5)));
    Shape shape;
    for (const auto& group : from) {
      std::int64_t extent = 1;
      for (const std::size_t label : group) extent *= extents[label];
      shape.emplace_back(extent);
    }
    const Tensor x = random_tensor(random, dtype, shape, true);
    const Tensor want = evaluate_reference(vertex, {x}, {});
    const std::vector<double> exactly(static_cast<std::size_t>(want.count()), 0);
    ASSERT_TRUE(agree(evaluate_alone(vertex, {x}, {}), want, exactly)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace einrel::test
