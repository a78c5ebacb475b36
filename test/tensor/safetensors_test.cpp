#include "tensor/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "tensor/compose.h"

namespace einrel {
namespace {

using namespace test;
using Names = std::vector<std::string>;

/// Opens every tensor of a file with this header and so many bytes of data.
std::string safetensors_complaint(const std::string& header, std::size_t data = 8) {
  return user_error_of([&] {
    const SafetensorsFile file = parse_safetensors(in_memory(safetensors_bytes(header, std::string(data, '\0')), "w"));
    for (std::size_t i = 0; i < file.names.size(); ++i) open_tensor(file, i);
  });
}

TEST(ReadSafetensors, EveryType) {
  for (const TypeSample& sample : type_samples()) {
    const std::string data = element_bytes(sample, std::endian::little);
    const std::string header = R"({"a":{"dtype":")" + std::string(sample.safetensors) +
                               R"(","shape":[2,3],"data_offsets":[0,)" + std::to_string(data.size()) + "]}}";
    const SafetensorsFile file = parse_safetensors(in_memory(safetensors_bytes(header, data)));
    const StoredTensor stored = open_tensor(file, 0);
    EXPECT_EQ(stored.type, sample.type);
    EXPECT_EQ(stored.shape, make_shape({2, 3}));
    EXPECT_EQ(values_of(read(stored)), values_in(sample));
  }
}

TEST(ReadSafetensors, SeveralTensorsInAnyOrderWithMetadataAndPadding) {
  const std::string header = R"({"__metadata__":{"format":"pt","note":"\u00e4"},
      "late":{"data_offsets":[4,8],"dtype":"F32","shape":[]},
      "none":{"dtype":"I64","shape":[3,0],"data_offsets":[4,4]},
      "early":{"shape":[1,1],"dtype":"F32","data_offsets":[0,4]}}      )";
  const FileBytes bytes = in_memory(safetensors_bytes(header, number(0x3F800000, 4) + number(0x40000000, 4)));
  const SafetensorsFile file = parse_safetensors(bytes);
  ASSERT_EQ(file.names, (Names{"late", "none", "early"}));
  EXPECT_EQ(values_of(read(open_tensor(file, 0))), std::vector<double>{2});
  EXPECT_EQ(read(open_tensor(file, 1)).shape(), make_shape({3, 0}));
  EXPECT_EQ(values_of(read(open_tensor(file, 2))), std::vector<double>{1});
  EXPECT_EQ(open_tensor(file, 0).name, "test file:late");
  EXPECT_EQ(open_tensor(file, 0).data, bytes.bytes.data() + bytes.bytes.size() - 4) << "mapped, not copied";
}

TEST(ReadSafetensors, AFileMayHoldNoTensor) {
  EXPECT_EQ(safetensors_complaint("{}", 0), "no UserError");
  EXPECT_EQ(safetensors_complaint(R"({"__metadata__":{}})", 0), "no UserError");
}

TEST(ReadSafetensors, ATypeThatIsNotOursIsNamedAndTheOthersStayReadable) {
  const std::string header = R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})";
  const SafetensorsFile file = parse_safetensors(in_memory(safetensors_bytes(header, std::string(8, '\0')), "w"));
  EXPECT_EQ(user_error_of([&] { open_tensor(file, 0); }).find("w:a: elements of type 'F8_E4M3' are not supported"), 0U);
  EXPECT_EQ(values_of(read(open_tensor(file, 1))), std::vector<double>{0});
}

TEST(ReadSafetensors, HeadersThatBreakTheSchemaSayWhere) {
  const std::vector<std::pair<std::string, std::string>> broken{
      {"", "does not begin with '{'"},
      {"[]", "does not begin with '{'"},
      {" {}", "does not begin with '{'"},
      {"{", "no valid JSON at byte"},
      {"{} x", "no valid JSON at byte"},
      {"{\"\xff\":1}", "no valid JSON at byte"},
      {R"({"a":1})", "a number where it does not belong"},
      {R"({"a":[]})", "a list where it does not belong"},
      {R"({"a":null})", "null where it does not belong"},
      {R"({"a":{"dtype":true}})", "a bool where it does not belong"},
      {R"({"a":{"dtype":{}}})", "an object where it does not belong"},
      {R"({"a":{"dtype":["F32"]}})", "a list where it does not belong"},
      {R"({"a":{"shape":"F32"}})", "a string where it does not belong"},
      {R"({"a":{"shape":[[2]]}})", "a list where it does not belong"},
      {R"({"a":{"shape":[-2]}})", "a negative number, -2"},
      {R"({"a":{"shape":[2.0]}})", "no integer of 64 bits"},
      {R"({"a":{"shape":[99999999999999999999]}})", "no integer of 64 bits"},
      {R"({"a":{"shape":[9223372036854775808]}})", "does not fit in 63 bits"},
      {R"({"a":{"data_offsets":[0]}})", "must be two numbers"},
      {R"({"a":{"data_offsets":[]}})", "must be two numbers"},
      {R"({"a":{"data_offsets":[0,4,8]}})", "a number where it does not belong"},
      {R"({"a":{"colour":"red"}})", "unknown field 'colour'"},
      {R"({"a":{"dtype":"F32","dtype":"F32"}})", "'dtype' twice in one tensor"},
      {R"({"a":{"dtype":"F32","shape":[2]}})", "tensor 'a' needs dtype, shape and data_offsets"},
      {R"({"a":{}})", "tensor 'a' needs dtype, shape and data_offsets"},
      {R"({"__metadata__":{"a":1}})", "a number where it does not belong"},
      {R"({"__metadata__":{"a":{}}})", "an object where it does not belong"},
      {R"({"__metadata__":"a"})", "a string where it does not belong"},
      {R"({"__metadata__":{},"__metadata__":{}})", "'__metadata__' is there twice"},
  };
  for (const auto& [header, expected] : broken) {
    const std::string message = safetensors_complaint(header);
    EXPECT_EQ(message.find("w: damaged .safetensors header: "), 0U) << message;
    EXPECT_NE(message.find(expected), std::string::npos) << header << " gave " << message;
  }
}

TEST(ReadSafetensors, DeepNestingIsCutOffAtOnce) {
  for (const std::string& start : {std::string("{\"a\":"), std::string("{\"a\":{\"shape\":"), std::string("")}) {
    std::string header = start;
    for (int i = 0; i < 1'000'000; ++i) header += start.empty() ? "{\"a\":" : "[";
    EXPECT_EQ(safetensors_complaint(header).find("w: damaged .safetensors header: "), 0U);
  }
}

/// The complaint about two f32 tensors of one element with these offsets in 8 bytes of data.
std::string with_offsets(const std::string& first, const std::string& second) {
  return safetensors_complaint(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[)" + first +
                               R"(]},"b":{"dtype":"F32","shape":[1],"data_offsets":[)" + second + "]}}");
}

TEST(ReadSafetensors, OffsetsMustFillTheFileWithoutOverlapOrGap) {
  EXPECT_EQ(with_offsets("0,4", "4,8"), "no UserError");
  EXPECT_EQ(with_offsets("4,8", "0,4"), "no UserError");
  const std::string overlap = "overlap another tensor or leave a gap";
  EXPECT_NE(with_offsets("0,4", "0,4").find(overlap), std::string::npos);
  EXPECT_NE(with_offsets("0,4", "3,8").find(overlap), std::string::npos);
  EXPECT_NE(with_offsets("0,4", "5,8").find(overlap), std::string::npos);
  EXPECT_NE(with_offsets("1,4", "4,8").find(overlap), std::string::npos);
  EXPECT_NE(with_offsets("0,4", "4,2").find(overlap), std::string::npos);
  EXPECT_NE(with_offsets("0,4", "4,18446744073709551615").find("but 8 are there"), std::string::npos);
  EXPECT_NE(with_offsets("0,4", "4,7").find("describes 7 bytes of tensors, but 8 are there"), std::string::npos);
  EXPECT_NE(with_offsets("0,3", "3,8").find("w:a: shape (1,) of f32 takes 4 bytes, but 3 are there"),
            std::string::npos);
}

TEST(ReadSafetensors, NamesMustDifferHoweverTheyAreEscaped) {
  EXPECT_EQ(safetensors_complaint(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                  R"("\u0061":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"),
            "w: damaged .safetensors header: two tensors are named 'a'");
}

TEST(ReadSafetensors, ALengthThatTheFileCannotHaveIsRefused) {
  const auto with_length = [](std::uint64_t length) {
    return user_error_of([&] { parse_safetensors(in_memory(number(length, 8) + "{}", "w")); });
  };
  EXPECT_EQ(with_length(2), "no UserError");
  EXPECT_NE(with_length(3).find("it says it is 3 bytes long, in a file of 10"), std::string::npos);
  EXPECT_NE(with_length(~std::uint64_t{0}).find("damaged"), std::string::npos);
  EXPECT_NE(user_error_of([] { parse_safetensors(in_memory("1234567", "w")); }).find("shorter than 8 bytes"),
            std::string::npos);
}

TEST(ReadSafetensors, AHeaderLongerThanTheFormatAllowsIsRefused) {
  const TemporaryFolder folder;
  put_file(folder / "w", number(100'000'001, 8) + "{");
  std::filesystem::resize_file(folder / "w", 100'000'100);
  EXPECT_NE(
      user_error_of([&] { parse_safetensors(map_file(folder / "w")); }).find("it says it is 100000001 bytes long"),
      std::string::npos);
}

TEST(ReadSafetensors, StrangeNamesAreShownOnOneShortLine) {
  const std::string header =
      R"({"a\n\u001b)" + std::string(5000, 'x') + R"(":{"dtype":"?","shape":[],"data_offsets":[0,8]}})";
  const std::string message = safetensors_complaint(header);
  EXPECT_LT(message.size(), 600U);
  EXPECT_EQ(message.find("w:a\\x0a\\x1bxxx"), 0U) << message;
}

TEST(WriteSafetensors, IsByteForByteTheFileComposedByHand) {
  std::string written;
  const Tensor narrow = tensor_of(DType::boolean, make_shape({3}), {1, 0, 1});
  const Tensor wide = tensor_of(DType::f64, {}, {1});
  write_safetensors({{"n\"\n", narrow}, {"w", wide}}, into(written));
  std::string header = R"({"w":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)"
                       R"("n\"\n":{"dtype":"BOOL","shape":[3],"data_offsets":[8,11]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(written, safetensors_bytes(header, number(0x3FF0000000000000, 8) + "\1" + '\0' + "\1"));
}

TEST(WriteSafetensors, WhatIsWrittenIsReadBackBitForBitAndAligned) {
  std::vector<NamedTensor> tensors;
  for (const Tensor& tensor : assorted_tensors()) tensors.push_back({"t" + std::to_string(tensors.size()), tensor});
  std::string written;
  write_safetensors(tensors, into(written));
  const SafetensorsFile file = parse_safetensors(in_memory(written));
  ASSERT_EQ(file.names.size(), tensors.size());
  EXPECT_EQ(file.data_begin % 8, 0U);
  for (const NamedTensor& named : tensors) {
    const auto found = std::find(file.names.begin(), file.names.end(), named.name);
    ASSERT_NE(found, file.names.end());
    const auto index = static_cast<std::size_t>(found - file.names.begin());
    const Tensor back = read(open_tensor(file, index));
    EXPECT_EQ(file.entries[index].begin % size_of(back.dtype()), 0U);
    EXPECT_EQ(back.dtype(), named.tensor.dtype());
    EXPECT_EQ(back.shape(), named.tensor.shape());
    EXPECT_EQ(memory_of(back), memory_of(named.tensor));
  }
}

TEST(WriteSafetensors, NamesThatTheFormatCannotHoldAreRefused) {
  for (const std::string& name : {std::string(), std::string("__metadata__"), std::string("\xff")}) {
    EXPECT_NE(user_error_of([&] { check_safetensors_name(name); }).find("cannot be a tensor's name"),
              std::string::npos);
  }
  check_safetensors_name("layers.0/attn:q \xc3\xa4\n");
}

}  // namespace
}  // namespace einrel
