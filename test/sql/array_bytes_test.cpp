#include "sql/functions/array_bytes.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"

namespace einrel::sql {
namespace {

TEST(ArrayBytes, AreTheHeadAndTheElements) {
  const Tensor tensor = tensor_of(DType::i32, make_shape({2, 3}), {1, 2, 3, 4, 5, 6});
  const std::vector<std::byte> bytes = array_bytes(tensor);
  ASSERT_EQ(bytes.size(), 8U + 2 * 8 + 6 * 4);
  EXPECT_EQ(std::memcmp(bytes.data(), "ERA1\x04\x02\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x01\0\0\0\x02", 29), 0);
}

TEST(ArrayBytes, GiveBackEveryTypeAndShape) {
  for (const DType dtype : all_dtypes) {
    for (const Shape& shape :
         {make_shape({}), make_shape({3}), make_shape({2, 2}), make_shape({0, 5}), make_shape({1, 1, 4})}) {
      std::vector<double> values;
      for (std::int64_t i = 0; i < element_count(shape); ++i) values.push_back(static_cast<double>(i % 2));
      const std::vector<std::byte> bytes = array_bytes(tensor_of(dtype, shape, values));
      const Tensor back = array_in(bytes);
      EXPECT_EQ(back.dtype(), dtype);
      EXPECT_EQ(back.shape(), shape);
      EXPECT_EQ(values_of(back), values);
    }
  }
}

TEST(ArrayBytes, AreOfAPermutedTensorRowMajor) {
  const Tensor transposed = tensor_of(DType::f64, make_shape({2, 2}), {1, 2, 3, 4}).permuted({1, 0});
  const std::vector<std::byte> bytes = array_bytes(transposed);
  EXPECT_EQ(values_of(array_in(bytes)), (std::vector<double>{1, 3, 2, 4}));
}

TEST(ArrayBytes, ThatAreCutAnywhereOrChangedInTheHeadAreRefusedOrAnotherArray) {
  const std::vector<std::byte> whole = array_bytes(tensor_of(DType::f32, make_shape({2, 2}), {1, 2, 3, 4}));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(array_in({whole.data(), size}), UserError) << size;
  for (std::size_t at = 0; at < 24; ++at) {
    for (int value = 0; value < 256; ++value) {
      std::vector<std::byte> changed = whole;
      changed[at] = static_cast<std::byte>(value);
      try {
        const Tensor array = array_in(changed);
        EXPECT_EQ(static_cast<std::size_t>(array.byte_count()) + 8 + 8 * array.rank(), changed.size());
      } catch (const UserError&) {
      }
    }
  }
}

TEST(ArrayBytes, OfManyElementsThatAreNotThereAreRefused) {
  std::vector<std::byte> bytes = array_bytes(tensor_of(DType::f64, make_shape({1, 1}), {1}));
  const std::int64_t large = std::int64_t{1} << 61;
  std::memcpy(bytes.data() + 8, &large, sizeof(large));
  EXPECT_THROW(array_in(bytes), UserError);
}

}  // namespace
}  // namespace einrel::sql
