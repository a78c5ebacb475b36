#include <einrel/einrel.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "errors.h"

namespace {

using einrel::DType;
using einrel::Tensor;
using einrel::test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;

/// A folder that goes with the test.
class ApiTensorFile : public testing::Test {
 protected:
  ApiTensorFile() { std::filesystem::create_directories(folder_); }
  ~ApiTensorFile() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("einrel-api-test-" + std::to_string(getpid()));
};

TEST(ApiTensor, HasTheElementsOfAVectorThatIsMovedInWithoutACopy) {
  std::vector<float> values{1, 2, 3, 4, 5, 6};
  const float* const data = values.data();
  const Tensor tensor({2, 3}, std::move(values));
  EXPECT_EQ(tensor.dtype(), DType::f32);
  EXPECT_THAT(tensor.shape(), ElementsAre(2, 3));
  EXPECT_EQ(tensor.rank(), 2U);
  EXPECT_EQ(tensor.count(), 6);
  EXPECT_EQ(tensor.values<float>().data(), data);
  EXPECT_EQ(tensor.bytes().size(), 24U);
  EXPECT_EQ(tensor.at<float>({1, 2}), 6);
}

TEST(ApiTensor, IsAScalarZeroByDefault) {
  const Tensor tensor;
  EXPECT_EQ(tensor.rank(), 0U);
  EXPECT_EQ(tensor.at<float>({}), 0);
}

TEST(ApiTensor, CopiesElementsOfEveryType) {
  const std::array<double, 2> doubles{1, 2};
  const std::array<std::int32_t, 2> narrow{-1, 7};
  const std::array<std::int64_t, 2> wide{std::numeric_limits<std::int64_t>::min(), 7};
  const std::array<bool, 2> flags{true, false};
  const std::array<einrel::Float16, 2> halves{einrel::to_float16(0.5F), einrel::to_float16(65504)};
  const std::array<einrel::BFloat16, 2> truncated{einrel::to_bfloat16(0.5F), einrel::to_bfloat16(3)};
  EXPECT_THAT(Tensor::copy({2}, doubles).at<double>({1}), 2);
  EXPECT_THAT(Tensor::copy({2}, narrow).at<std::int32_t>({0}), -1);
  EXPECT_THAT(Tensor::copy({2}, wide).at<std::int64_t>({0}), wide[0]);
  EXPECT_THAT(Tensor::copy({2}, flags).at<bool>({0}), true);
  EXPECT_EQ(to_float(Tensor::copy({2}, halves).at<einrel::Float16>({1})), 65504.0F);
  EXPECT_EQ(to_float(Tensor::copy({2}, truncated).at<einrel::BFloat16>({1})), 3.0F);
  EXPECT_EQ(Tensor::copy({2}, flags).dtype(), DType::boolean);
  EXPECT_EQ(einrel::name_of(DType::boolean), "bool");
  EXPECT_EQ(einrel::size_of(DType::bf16), 2U);
}

TEST(ApiTensor, MayBeEmpty) {
  const Tensor tensor({2, 0}, std::vector<float>{});
  EXPECT_EQ(tensor.count(), 0);
  EXPECT_TRUE(tensor.values<float>().empty());
}

TEST(ApiTensor, BorrowsElementsWhereTheyAre) {
  std::array<float, 2> values{1, 2};
  const Tensor tensor = Tensor::borrow({2}, values);
  EXPECT_EQ(tensor.values<float>().data(), values.data());
}

template <class Range>
concept Borrowable = requires(Range&& range) {
  Tensor::borrow({1}, std::forward<Range>(range));
};

TEST(ApiTensor, BorrowsNothingThatIsAboutToGo) {
  static_assert(Borrowable<std::vector<float>&>);
  static_assert(Borrowable<std::span<const float>>);
  static_assert(!Borrowable<std::vector<float>>);
  static_assert(!Borrowable<std::vector<std::string>&>);
}

TEST(ApiTensor, KeepsTheOwnerOfBorrowedElementsAsLongAsACopyLives) {
  auto owner = std::make_shared<std::vector<float>>(3, 1.0F);
  const std::weak_ptr<std::vector<float>> alive = owner;
  Tensor copy;
  {
    const Tensor tensor = Tensor::borrow({3}, *owner, owner);
    owner.reset();
    copy = tensor;
  }
  EXPECT_FALSE(alive.expired());
  EXPECT_EQ(copy.at<float>({2}), 1);
  copy = Tensor();
  EXPECT_TRUE(alive.expired());
}

TEST(ApiTensor, StaysWholeWhenItIsMovedFrom) {
  Tensor tensor({2}, std::vector<float>{1, 2});
  const Tensor moved = std::move(tensor);
  EXPECT_EQ(moved.at<float>({1}), 2);
  EXPECT_EQ(tensor.at<float>({1}), 2);  // NOLINT(bugprone-use-after-move): that is what is tested
}

TEST(ApiTensor, RefusesShapesThatItsElementsDoNotFill) {
  const std::vector<float> five(5);
  EXPECT_EQ(message_of([&] {
              Tensor::copy({2, 3}, five);
            }),
            "a tensor of shape (2, 3) has 6 elements, but 5 are given");
  EXPECT_THAT(message_of([&] { Tensor::borrow({6}, five); }), HasSubstr("shape (6,) has 6"));
  EXPECT_THAT(message_of([&] { Tensor({}, five); }), HasSubstr("shape () has 1 element, but 5 are given"));
  EXPECT_THAT(message_of([&] { Tensor({-1, -5}, five); }), HasSubstr("shape (-1, -5): an extent is 0 or more"));
}

TEST(ApiTensor, RefusesShapesWhoseSizeOverflows) {
  const std::vector<double> none;
  const std::int64_t large = std::int64_t{1} << 32;
  EXPECT_NE(message_of([&] { Tensor::copy({large, large}, none); }), "");
  EXPECT_NE(message_of([&] { Tensor::copy({large, large / 8}, none); }), "") << "2^61 elements, but 2^64 bytes";
  EXPECT_EQ(Tensor::copy({large, large, 0}, none).count(), 0);
}

TEST(ApiTensor, RefusesAccessOfAnotherTypeAndOutside) {
  const Tensor tensor({2, 3}, std::vector<float>(6));
  EXPECT_EQ(message_of([&] { tensor.values<double>(); }), "the elements of a tensor of type f32 are asked for as f64");
  EXPECT_EQ(message_of([&] { tensor.at<float>({0, 3}); }), "a tensor of shape (2, 3) has no element (0, 3)");
  EXPECT_NE(message_of([&] { tensor.at<float>({-1, 0}); }), "");
  EXPECT_NE(message_of([&] { tensor.at<float>({0}); }), "");
  EXPECT_NE(message_of([&] { tensor.at<float>({0, 0, 0}); }), "");
}

TEST_F(ApiTensorFile, IsReadAsItWasWritten) {
  const Tensor tensor({2, 2}, std::vector<std::int64_t>{1, -2, 3, 4});
  for (const char* const name : {"x.npy", "x.npz:X", "x.safetensors:X"}) {
    tensor.save(path(name));
    const Tensor read = Tensor::load(path(name));
    EXPECT_EQ(read.dtype(), DType::i64) << name;
    EXPECT_THAT(read.shape(), ElementsAre(2, 2)) << name;
    EXPECT_THAT(read.values<std::int64_t>(), ElementsAre(1, -2, 3, 4)) << name;
  }
}

TEST_F(ApiTensorFile, IsRowMajorHoweverTheFileIs) {
  std::ofstream file(path("fortran.npy"), std::ios::binary);
  std::string header = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }";
  header.append(117 - header.size(), ' ').push_back('\n');
  const std::array<float, 6> columns{1, 4, 2, 5, 3, 6};
  file << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size()) << '\0' << header;
  file.write(reinterpret_cast<const char*>(columns.data()), sizeof columns);
  file.close();
  EXPECT_THAT(Tensor::load(path("fortran.npy")).at<float>({1, 0}), 4);
  const Tensor tensor = Tensor::load(path("fortran.npy"));
  EXPECT_THAT(tensor.values<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(ApiTensorFile, HasAlignedElementsWhereverTheyLieInTheFile) {
  const Tensor bytes({3}, std::vector<std::int32_t>{1, 2, 3});
  std::ofstream file(path("odd.safetensors"), std::ios::binary);
  const std::string header = R"({"F":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})";
  file << static_cast<char>(header.size()) << std::string(7, '\0') << header;
  const double value = 2.5;
  file.write(reinterpret_cast<const char*>(&value), sizeof value);
  file.close();
  ASSERT_NE((8 + header.size()) % 8, 0U);
  const Tensor tensor = Tensor::load(path("odd.safetensors"));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.bytes().data()) % alignof(double), 0U);
  EXPECT_EQ(tensor.at<double>({0}), 2.5);
}

TEST_F(ApiTensorFile, NamesWhatIsWrongWithAFile) {
  const Tensor tensor;
  EXPECT_THAT(message_of([&] { Tensor::load(path("absent.npy")); }), HasSubstr("absent.npy"));
  EXPECT_THAT(message_of([&] { tensor.save(path("x.jpeg")); }), HasSubstr("x.jpeg"));
  EXPECT_THAT(message_of([&] { tensor.save(path("no/folder/x.npy")); }), HasSubstr("no/folder"));
  std::ofstream(path("short.npy")) << "\x93NUMPY";
  EXPECT_THAT(message_of([&] { Tensor::load(path("short.npy")); }), HasSubstr("short.npy"));
}

}  // namespace
