#include "tensor/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensor/bytes.h"
#include "tensor/compose.h"

namespace einrel {
namespace {

using namespace test;

std::string npy_complaint(const std::string& bytes) {
  return user_error_of([&] { parse_npy(in_memory(bytes, "x.npy")); });
}

std::string npy_complaint_about(const std::string& dictionary) {
  return npy_complaint(npy_header_bytes(dictionary) + std::string(12, '\0'));
}

TEST(ReadNpy, EveryTypeInEveryByteOrderLayoutAndVersion) {
  for (const TypeSample& sample : type_samples()) {
    const std::vector<double> v = values_in(sample);
    for (const char order : {'<', '>', '='}) {
      if (sample.type == StoredType::bf16 && order != '<') continue;
      const std::string data = element_bytes(sample, order == '>' ? std::endian::big : std::endian::little);
      const std::string descr = order + std::string(sample.npy);
      for (const int version : {1, 2, 3}) {
        const std::string rows = npy_header_bytes(npy_dictionary(descr, "(2, 3)"), version) + data;
        const std::string columns = npy_header_bytes(npy_dictionary(descr, "(2, 3)", true), version) + data;
        const StoredTensor stored = parse_npy(in_memory(rows));
        EXPECT_EQ(stored.type, sample.type);
        EXPECT_EQ(stored.shape, make_shape({2, 3}));
        EXPECT_EQ(values_of(read(stored)), v) << descr;
        EXPECT_EQ(values_of(read(parse_npy(in_memory(columns)))),
                  (std::vector<double>{v[0], v[2], v[4], v[1], v[3], v[5]}))
            << descr;
      }
    }
  }
}

TEST(ReadNpy, BFloat16HasThreeSpellings) {
  for (const char* descr : {"<V2", "|V2", "bfloat16"}) {
    const std::string bytes = npy_header_bytes(npy_dictionary(descr, "(1,)")) + number(0x3F80, 2);
    EXPECT_EQ(values_of(read(parse_npy(in_memory(bytes)))), std::vector<double>{1}) << descr;
  }
}

TEST(ReadNpy, ComplexNumbersArePairsInALastDimension) {
  // 1 + 2i, -2 + 0.5i in both byte orders, as rows and as columns: there elements lie otherwise, parts do not.
  const std::vector<double> v{1, 2, -2, 0.5, 3, 0, 0, -1};
  for (const std::endian order : {std::endian::little, std::endian::big}) {
    std::string bytes;
    for (const double value : v) append_number(bytes, static_cast<float>(value), order);
    for (const std::string type : {"c8", "F", "complex64"}) {
      const bool has_mark = type != "complex64";
      if (!has_mark && order == std::endian::big) continue;
      const std::string descr = (!has_mark ? "" : order == std::endian::big ? ">" : "<") + type;
      const StoredTensor rows = parse_npy(in_memory(npy_header_bytes(npy_dictionary(descr, "(2, 2)")) + bytes));
      EXPECT_TRUE(rows.is_complex);
      EXPECT_EQ(type_name(rows), "c64");
      EXPECT_EQ(rows.shape, make_shape({2, 2, 2}));
      EXPECT_EQ(values_of(read(rows)), v) << descr;
      const StoredTensor columns =
          parse_npy(in_memory(npy_header_bytes(npy_dictionary(descr, "(2, 2)", true)) + bytes));
      EXPECT_EQ(values_of(read(columns)), (std::vector<double>{1, 2, 3, 0, -2, 0.5, 0, -1})) << descr;
    }
  }
  EXPECT_THAT(npy_complaint(npy_header_bytes(npy_dictionary("<c16", "(2,)")) + std::string(31, '\0')),
              testing::HasSubstr("takes 32 bytes, but 31 are there"));
}

// What numpy.dtype(descr) makes of these on a little-endian machine.
TEST(ReadNpy, ATypeWithoutByteOrderIsInThatOfThisMachine) {
  for (const char* descr : {"f4", "|f4", "=f4", "f", "<f", "float32"}) {
    const std::string bytes =
        npy_header_bytes(npy_dictionary(descr, "(2,)")) + number(0x3F800000, 4) + number(0xC0000000, 4);
    EXPECT_EQ(values_of(read(parse_npy(in_memory(bytes)))), (std::vector<double>{1, -2})) << descr;
  }
  for (const char* descr : {"u1", "uint8"}) {
    const std::string bytes = npy_header_bytes(npy_dictionary(descr, "(2,)")) + "\x07\xff";
    EXPECT_EQ(values_of(read(parse_npy(in_memory(bytes)))), (std::vector<double>{7, 255})) << descr;
  }
}

TEST(ReadNpy, WhatFollowsTheElementsIsIgnored) {
  const std::string first = npy_header_bytes(npy_dictionary("<i4", "(2,)")) + number(7, 4) + number(8, 4);
  const std::string second = npy_header_bytes(npy_dictionary("<i4", "()")) + number(9, 4);
  for (const std::string& rest : {std::string(1, '\0'), second}) {
    EXPECT_EQ(values_of(read(parse_npy(in_memory(first + rest)))), (std::vector<double>{7, 8}));
  }
  const std::string none = npy_header_bytes(npy_dictionary("<i4", "(0,)")) + second;
  EXPECT_EQ(read(parse_npy(in_memory(none))).count(), 0);
}

TEST(ReadNpy, ScalarsAndEmptyArrays) {
  const std::string scalar = npy_header_bytes(npy_dictionary("<i4", "()")) + number(7, 4);
  EXPECT_EQ(values_of(read(parse_npy(in_memory(scalar)))), std::vector<double>{7});
  const std::string empty = npy_header_bytes(npy_dictionary("<f8", "(3, 0, 9223372036854775807)", true));
  EXPECT_EQ(read(parse_npy(in_memory(empty))).count(), 0);
}

TEST(ReadNpy, TheDictionaryMayBeWrittenAsPythonAllows) {
  for (const char* dictionary : {
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
           "{'shape': (3,), 'descr': '<f4', 'fortran_order': False}",
           "{\"fortran_order\":False,\"shape\":(3,),\"descr\":\"<f4\"}   ",
           "  { 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 3 , ) , } \t",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3L,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3)}",
       }) {
    EXPECT_EQ(npy_complaint_about(dictionary), "no UserError") << dictionary;
  }
}

TEST(ReadNpy, ABrokenDictionaryIsNamedAndPlaced) {
  EXPECT_EQ(npy_complaint_about("{'descr': '<f4', 'fortran_order': False, 'shape': (3)}"),
            "x.npy: damaged .npy header: a tuple of one needs a comma (at character 53)");
  const std::vector<std::pair<std::string, std::string>> broken{
      {"", "'{' is missing"},
      {"{'descr': '<f4', 'fortran_order': False}", "must all be there"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "'descr' is there twice"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'x': 1}", "unknown key 'x'"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}", "'fortran_order' must be True or False"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}", "must be a number, 0 or more"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (+3,)}", "must be a number, 0 or more"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", "must be a number, 0 or more"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3.0,)}", "')' is missing"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': [3]}", "'(' is missing"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", "does not fit in 63 bits"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)", "'}' is missing"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x", "text after the closing '}'"},
      {"{'descr': '<f4", "a string does not end"},
      {"{'descr' '<f4'", "':' is missing"},
      {"{'descr': [('a', '<f4'", "a list does not end"},
  };
  for (const auto& [dictionary, expected] : broken) {
    const std::string message = npy_complaint_about(dictionary);
    EXPECT_EQ(message.find("x.npy: damaged .npy header: "), 0U) << message;
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  }
}

TEST(ReadNpy, ATypeThatIsNotOursIsNamed) {
  for (const char* descr : {"<u8", "<c4", "<f16", "<U2", "|O", "<M8[s]", "|S3", "?f4", "f5", "4", "<", "<float32",
                            "=V2", ">V2", "<V4", ""}) {
    EXPECT_NE(npy_complaint_about(npy_dictionary(descr, "(3,)")).find("elements of type '" + std::string(descr) + "'"),
              std::string::npos)
        << descr;
  }
  EXPECT_NE(
      npy_complaint_about("{'descr': [('a]', '<f4'), ('b', [('c', '<i4')])], 'fortran_order': False, 'shape': (3,)}")
          .find("elements of type '[('a]', '<f4'), ('b', [('c', '<i4')])]' are not supported"),
      std::string::npos);
}

TEST(ReadNpy, ShapesThatTheFileCannotHoldAreRefused) {
  for (const char* shape :
       {"(4,)", "(9223372036854775807,)", "(4611686018427387904, 4)", "(9223372036854775807, 9223372036854775807)"}) {
    EXPECT_EQ(npy_complaint_about(npy_dictionary("<f4", shape)).find("x.npy: "), 0U) << shape;
  }
  std::string many = "(";
  for (int i = 0; i < 300; ++i) many += "1,";
  EXPECT_NE(npy_complaint_about(npy_dictionary("<f4", many + ")")).find("more than 255 dimensions"), std::string::npos);
}

TEST(ReadNpy, OtherFilesAndVersionsAreRefused) {
  EXPECT_NE(npy_complaint("").find("not an .npy file"), std::string::npos);
  EXPECT_NE(npy_complaint("PK\3\4").find("not an .npy file"), std::string::npos);
  EXPECT_NE(npy_complaint("\x93NUMPY").find("cut short"), std::string::npos);
  for (const int version : {0, 4, 255}) {
    const std::string bytes = npy_header_bytes(npy_dictionary("<f4", "(3,)"), version);
    EXPECT_NE(npy_complaint(bytes).find(".npy version " + std::to_string(version) + " is unknown"), std::string::npos);
  }
  EXPECT_NE(npy_complaint(std::string("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14)).find("4294967295 bytes long"),
            std::string::npos);
}

TEST(WriteNpy, IsByteForByteWhatNumPyWrites) {
  std::string written;
  write_npy(tensor_of(DType::f32, make_shape({3}), {0, 1, -2}), into(written));
  // numpy.save pads the header with spaces until the data start at a multiple of 64.
  const std::string dictionary = npy_dictionary("<f4", "(3,)");
  const std::string expected = npy_header_bytes(dictionary, 1, 128 - 10 - dictionary.size() - 1) + number(0, 4) +
                               number(0x3F800000, 4) + number(0xC0000000, 4);
  EXPECT_EQ(written, expected);
}

TEST(WriteNpy, NamesTheTypesAsNumPyDoes) {
  const std::vector<std::string> descrs{"<f4", "<f8", "<V2", "<f2", "<i4", "<i8", "|b1"};
  for (std::size_t i = 0; i < all_dtypes.size(); ++i) {
    EXPECT_NE(npy_header(all_dtypes.at(i), {}).find("'descr': '" + descrs[i] + "'"), std::string::npos);
  }
}

TEST(WriteNpy, NamesComplexNumbersAsNumPyDoes) {
  EXPECT_THAT(npy_header(DType::f32, make_shape({3, 2}), true),
              testing::HasSubstr("{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }"));
  EXPECT_THAT(npy_header(DType::f64, make_shape({2}), true),
              testing::HasSubstr("{'descr': '<c16', 'fortran_order': False, 'shape': (), }"));
}

TEST(WriteNpy, DataStartAtAMultipleOf64HoweverLongTheShape) {
  for (std::size_t rank = 0; rank <= max_rank; ++rank) {
    const std::string header = npy_header(DType::f32, Shape(rank, Extent(1'000'000'000'000)));
    EXPECT_EQ(header.size() % 64, 0U);
    EXPECT_EQ(header.back(), '\n');
  }
}

TEST(WriteNpy, WhatIsWrittenIsReadBackBitForBit) {
  for (const Tensor& tensor : assorted_tensors()) {
    std::string written;
    write_npy(tensor, into(written));
    const Tensor back = read(parse_npy(in_memory(written)));
    EXPECT_EQ(back.dtype(), tensor.dtype());
    EXPECT_EQ(back.shape(), tensor.shape());
    EXPECT_EQ(memory_of(back), memory_of(tensor)) << name_of(tensor.dtype()) << to_string(tensor.shape());
  }
}

TEST(WriteNpy, LargeTensorsPassInSmallPiecesWhateverTheirStrides) {
  const Tensor rows = counting_tensor(DType::f32, make_shape({700, 1001}));
  for (const Tensor& tensor : {rows, rows.permuted({1, 0})}) {
    std::string written;
    std::size_t largest = 0;
    write_npy(tensor, [&](std::span<const std::byte> bytes) {
      largest = std::max(largest, bytes.size());
      into(written)(bytes);
    });
    EXPECT_LE(largest, std::size_t{1} << 20U);
    EXPECT_TRUE(memory_of(read(parse_npy(in_memory(written)))) == memory_of(tensor));
  }
}

}  // namespace
}  // namespace einrel
