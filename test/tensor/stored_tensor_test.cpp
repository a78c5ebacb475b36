#include "tensor/stored_tensor.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensor/compose.h"

namespace einrel {
namespace {

using namespace test;

constexpr auto little = std::endian::little;

/// Whether every whole number from `low` to `high` is a value of `dtype`, tried one by one where there are few.
bool holds_all(DType dtype, double low, double high) {
  const double step = high - low > 70'000 ? 65'537 : 1;
  for (double value = low; value <= high; value += step) {
    if (values_of(tensor_of(dtype, make_shape({1}), {value})).front() != value) return false;
  }
  return values_of(tensor_of(dtype, make_shape({1}), {high})).front() == high;
}

TEST(Fits, SmallIntegersGoWhereEveryValueIsExact) {
  const std::vector<std::tuple<StoredType, double, double>> ranges{
      {StoredType::u8, 0, 255},           {StoredType::i8, -128, 127},
      {StoredType::u16, 0, 65535},        {StoredType::i16, -32768, 32767},
      {StoredType::u32, 0, 4294967295.0}, {StoredType::i32, -2147483648.0, 2147483647.0}};
  for (const auto& [type, low, high] : ranges) {
    for (const DType dtype : all_dtypes) {
      EXPECT_EQ(fits(type, dtype), holds_all(dtype, low, high)) << name_of(type) << " as " << name_of(dtype);
    }
    EXPECT_TRUE(fits(type, natural_dtype(type)));
  }
}

TEST(ReadBox, IsThatBoxOfWhatIsRead) {
  std::string bytes;
  for (int i = 0; i < 2 * 60; ++i) bytes += static_cast<char>(7 * i);
  const Shape shape = make_shape({3, 4, 5});
  for (const StoredType type : {StoredType::u8, StoredType::i16, StoredType::u16, StoredType::f16}) {
    for (const std::endian order : {std::endian::little, std::endian::big}) {
      for (const ElementOrder layout : {ElementOrder::row_major, ElementOrder::column_major}) {
        const FileBytes file = in_memory(bytes.substr(0, 60 * size_of(type)));
        const StoredTensor stored = stored_tensor(file, type, order, shape, layout);
        const DType dtype = type == StoredType::f16 ? DType::f16 : DType::f32;
        const std::vector<std::int64_t> begin{1, 0, 2};
        Tensor box(dtype, make_shape({2, 3, 2}));
        read_box(stored, dtype, begin, box.shape(), box.mutable_data());
        EXPECT_EQ(memory_of(box), memory_of(read(stored, dtype).box(begin, box.shape()).row_major()));
      }
    }
  }
}

TEST(Fits, OurOwnTypesAreOnlyThemselves) {
  for (const DType stored : all_dtypes) {
    for (const DType wanted : all_dtypes) {
      if (stored == DType::i32) continue;  // an integer that is widened, as above
      EXPECT_EQ(fits(stored_type(stored), wanted), stored == wanted);
    }
    EXPECT_EQ(natural_dtype(stored_type(stored)), stored);
    EXPECT_EQ(name_of(stored_type(stored)), name_of(stored));
    EXPECT_EQ(size_of(stored_type(stored)), size_of(stored));
  }
}

TEST(Read, GivesEveryTypeInEveryDTypeItFits) {
  for (const TypeSample& sample : type_samples()) {
    for (const std::endian order : {std::endian::little, std::endian::big}) {
      const FileBytes data = in_memory(element_bytes(sample, order));
      const StoredTensor stored = stored_tensor(data, sample.type, order, make_shape({2, 3}), ElementOrder::row_major);
      for (const DType dtype : all_dtypes) {
        if (!fits(sample.type, dtype)) continue;
        const Tensor tensor = read(stored, dtype);
        EXPECT_EQ(tensor.dtype(), dtype);
        EXPECT_EQ(tensor.shape(), make_shape({2, 3}));
        EXPECT_EQ(values_of(tensor), values_in(sample)) << name_of(sample.type) << " as " << name_of(dtype);
      }
    }
  }
}

TEST(Read, ByDefaultWidensToTheNaturalType) {
  for (const TypeSample& sample : type_samples()) {
    const FileBytes data = in_memory(element_bytes(sample, little));
    const Tensor tensor = read(stored_tensor(data, sample.type, little, make_shape({6}), ElementOrder::row_major));
    EXPECT_EQ(tensor.dtype(), natural_dtype(sample.type));
    EXPECT_EQ(values_of(tensor), values_in(sample));
  }
}

TEST(Read, ColumnMajorBytesAreTheTransposeInEveryType) {
  for (const TypeSample& sample : type_samples()) {
    const std::vector<double> v = values_in(sample);
    const FileBytes data = in_memory(element_bytes(sample, std::endian::big));
    const Tensor tensor =
        read(stored_tensor(data, sample.type, std::endian::big, make_shape({2, 3}), ElementOrder::column_major));
    EXPECT_EQ(values_of(tensor), (std::vector<double>{v[0], v[2], v[4], v[1], v[3], v[5]}));
  }
}

TEST(Read, TypesOfOursInNativeOrderAreNotCopied) {
  for (const TypeSample& sample : type_samples()) {
    if (natural_dtype(sample.type) != static_cast<DType>(sample.type)) continue;
    const FileBytes data = in_memory(element_bytes(sample, std::endian::native));
    for (const ElementOrder layout : {ElementOrder::row_major, ElementOrder::column_major}) {
      const StoredTensor stored = stored_tensor(data, sample.type, std::endian::native, make_shape({3, 2}), layout);
      EXPECT_EQ(read(stored).data(), data.bytes.data());
    }
  }
}

TEST(Read, TheTensorKeepsTheBytesAlive) {
  Tensor tensor;
  {
    const FileBytes data = in_memory(number(0x3F800000, 4) + number(0x40000000, 4));
    tensor = read(stored_tensor(data, StoredType::f32, little, make_shape({2}), ElementOrder::row_major));
  }
  EXPECT_EQ(values_of(tensor), (std::vector<double>{1, 2}));
}

TEST(Read, ElementsNeedNotBeAligned) {
  const FileBytes data = in_memory("x" + number(0x3FF0000000000000, 8));
  const FileBytes odd{data.name, data.bytes.subspan(1), data.owner};
  const Tensor tensor = read(stored_tensor(odd, StoredType::f64, little, {}, ElementOrder::row_major));
  EXPECT_EQ(values_of(tensor), std::vector<double>{1});
}

TEST(Read, RefusesATypeThatDoesNotFitAndNamesBoth) {
  const FileBytes data = in_memory(number(0, 8), "x.npy");
  const StoredTensor stored = stored_tensor(data, StoredType::f64, little, {}, ElementOrder::row_major);
  EXPECT_EQ(user_error_of([&] { read(stored, DType::f32); }),
            "x.npy holds f64, which is not read as f32; declare f64, or convert the file");
}

TEST(StoredTensor, NeedsExactlyItsBytes) {
  for (const std::size_t size : {11U, 13U}) {
    const FileBytes data = in_memory(std::string(size, '\0'), "x.npy");
    EXPECT_EQ(
        user_error_of([&] { stored_tensor(data, StoredType::f32, little, make_shape({3}), ElementOrder::row_major); }),
        "x.npy: shape (3,) of f32 takes 12 bytes, but " + std::to_string(size) +
            " are there; the file is damaged or cut short");
  }
}

TEST(StoredTensor, NamesTheFileWhenTheShapeOverflows) {
  const std::int64_t half = std::int64_t{1} << 31;
  const auto complaint = [&](const std::vector<std::int64_t>& extents) {
    return user_error_of([&] { stored_bytes("x.npy", StoredType::f32, make_shape(extents)); });
  };
  EXPECT_EQ(complaint({half, half}).find("x.npy: impossible shape (2147483648, 2147483648)"), 0U);
  EXPECT_EQ(complaint({half, half, half}).find("x.npy: impossible shape"), 0U);
  EXPECT_EQ(complaint({half, half, half, 0}), "no UserError");
  EXPECT_EQ(complaint(std::vector<std::int64_t>(256, 1)), "x.npy: a file holds at most 255 dimensions, not 256");
}

}  // namespace
}  // namespace einrel
