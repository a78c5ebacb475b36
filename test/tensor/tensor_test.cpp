#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "tensor/rows.h"

namespace einrel {
namespace {

using Values = std::vector<double>;

Tensor counting(const std::vector<std::int64_t>& extents) {
  const Shape shape = make_shape(extents);
  Values values(static_cast<std::size_t>(element_count(shape)));
  std::iota(values.begin(), values.end(), 0.0);
  return tensor_of(DType::f64, shape, values);
}

TEST(Tensor, OfNothingIsAScalarZero) {
  EXPECT_EQ(values_of(Tensor()), Values{0});
  EXPECT_EQ(Tensor().rank(), 0U);
}

TEST(Tensor, HoldsValuesOfEveryDType) {
  for (const DType dtype : all_dtypes) {
    const Tensor tensor = tensor_of(dtype, make_shape({2, 2}), {0, 1, 1, 0});
    EXPECT_EQ(values_of(tensor), (Values{0, 1, 1, 0})) << name_of(dtype);
    EXPECT_EQ(tensor.byte_count(), static_cast<std::int64_t>(4 * size_of(dtype)));
  }
}

TEST(Tensor, PermutedIsAViewOfTheSameElements) {
  const Tensor tensor = counting({2, 3});
  const Tensor transposed = tensor.permuted({1, 0});
  EXPECT_EQ(values_of(transposed), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(transposed.data(), tensor.data());
  EXPECT_FALSE(transposed.is_row_major());
  EXPECT_EQ(values_of(counting({2, 3, 2}).permuted({2, 0, 1})), (Values{0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11}));
}

TEST(Tensor, RowMajorCopiesOnlyWhatIsNot) {
  const Tensor tensor = counting({2, 3});
  EXPECT_EQ(tensor.row_major().data(), tensor.data());
  const Tensor transposed = tensor.permuted({1, 0});
  const Tensor copy = transposed.row_major();
  EXPECT_NE(copy.data(), tensor.data());
  EXPECT_TRUE(copy.is_row_major());
  EXPECT_EQ(values_of(copy), values_of(transposed));
}

TEST(Tensor, ReshapesWithoutACopyOrNotAtAll) {
  const Tensor tensor = counting({2, 6});
  const auto reshaped = tensor.reshaped(make_shape({3, 4}));
  ASSERT_TRUE(reshaped.has_value());
  EXPECT_EQ(reshaped->data(), tensor.data());
  EXPECT_EQ(values_of(*reshaped), values_of(tensor));
  EXPECT_FALSE(tensor.permuted({1, 0}).reshaped(make_shape({3, 4})).has_value());
  EXPECT_THROW(std::ignore = tensor.reshaped(make_shape({5})), Bug);
}

TEST(Tensor, DimensionsOfOneDoNotMatterForTheOrder) {
  const Tensor tensor = counting({3, 1, 2});
  const Tensor moved = tensor.permuted({1, 0, 2});
  EXPECT_TRUE(moved.is_row_major());
  EXPECT_EQ(values_of(moved), values_of(tensor));
}

TEST(Tensor, AnEmptyOneHasNoElementsHoweverLargeItsExtents) {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  const Tensor empty(DType::f64, make_shape({huge, 0, huge}));
  EXPECT_EQ(empty.count(), 0);
  EXPECT_TRUE(empty.is_row_major());
  EXPECT_EQ(values_of(empty), Values{});
}

TEST(Tensor, TooLargeForAnyMemoryIsANamedError) {
  EXPECT_THROW(Tensor(DType::f64, make_shape({std::int64_t{1} << 62})), UserError);
  EXPECT_THROW(Tensor(DType::f32, make_shape({std::int64_t{1} << 40, std::int64_t{1} << 40})), UserError);
}

TEST(Tensor, ViewsAreReadOnly) {
  Tensor tensor = counting({2, 2});
  EXPECT_NE(tensor.mutable_data(), nullptr);
  EXPECT_THROW(tensor.permuted({1, 0}).mutable_data(), Bug);
  const auto owner = std::make_shared<Tensor>(tensor);
  EXPECT_THROW(Tensor(DType::f64, make_shape({4}), {1}, owner->data(), owner).mutable_data(), Bug);
}

TEST(Tensor, AViewMayRepeatAndReverse) {
  const auto owner = std::make_shared<Tensor>(counting({3}));
  const Tensor repeated(DType::f64, make_shape({2, 3}), {0, 1}, owner->data(), owner);
  EXPECT_EQ(values_of(repeated), (Values{0, 1, 2, 0, 1, 2}));
  const Tensor reversed(DType::f64, make_shape({3}), {-1}, owner->data() + 16, owner);
  EXPECT_EQ(values_of(reversed), (Values{2, 1, 0}));
  EXPECT_EQ(values_of(reversed.row_major()), (Values{2, 1, 0}));
}

/// The offsets that for_each_row visits, in order.
std::vector<std::int64_t> offsets_by_rows(const Shape& shape, const Strides& strides) {
  std::vector<std::int64_t> offsets;
  for_each_row(shape, strides, [&](std::int64_t offset, std::int64_t count, std::int64_t stride) {
    for (std::int64_t i = 0; i < count; ++i) offsets.push_back(offset + i * stride);
  });
  return offsets;
}

TEST(Rows, VisitTheSameElementsInTheSameOrderAsOneByOne) {
  const std::vector<std::pair<std::vector<std::int64_t>, Strides>> layouts{
      {{}, {}},
      {{1, 1}, {7, 9}},
      {{0, 3}, {1, 1}},
      {{4, 3, 2}, {6, 2, 1}},
      {{4, 3, 2}, {1, 4, 12}},
      {{4, 3, 2}, {6, 1, 3}},
      {{2, 1, 3, 1, 2}, {6, 50, 2, 60, 1}},
      {{5, 4}, {0, 6}},
      {{5, 4}, {0, 0}},
      {{4, 6}, {-6, -1}},
      {{3, 2}, {-1, 5}},
  };
  for (const auto& [extents, strides] : layouts) {
    const Shape shape = make_shape(extents);
    std::vector<std::int64_t> one_by_one;
    for_each_offset(shape, strides, [&](std::int64_t offset) { one_by_one.push_back(offset); });
    EXPECT_EQ(offsets_by_rows(shape, strides), one_by_one) << to_string(shape);
  }
}

TEST(Rows, MergeDimensionsThatStepEvenly) {
  const auto row_major = merged_dimensions(make_shape({4, 1, 3, 2}), {6, 99, 2, 1});
  EXPECT_EQ(row_major, std::pair(make_shape({24}), Strides{1}));
  const auto transposed = merged_dimensions(make_shape({2, 4, 3}), {1, 6, 2});
  EXPECT_EQ(transposed, std::pair(make_shape({2, 12}), Strides{1, 2}));
}

}  // namespace
}  // namespace einrel
