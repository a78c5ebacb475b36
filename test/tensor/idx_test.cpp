#include "tensor/idx.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tensor/compose.h"

namespace einrel {
namespace {

using namespace test;

std::string idx_complaint(const std::string& bytes) {
  return user_error_of([&] { parse_idx(in_memory(bytes, "i.idx")); });
}

std::string idx_gz_complaint(const std::string& bytes) {
  return user_error_of([&] { parse_idx_gz(in_memory(bytes, "i.idx.gz")); });
}

TEST(ReadIdx, EveryTypeWithAndWithoutGzip) {
  for (const TypeSample& sample : type_samples()) {
    if (sample.idx == 0) continue;
    const std::string bytes = idx_bytes(sample.idx, {2, 3}, element_bytes(sample, std::endian::big));
    for (const StoredTensor& stored : {parse_idx(in_memory(bytes)), parse_idx_gz(in_memory(deflated(bytes, 31)))}) {
      EXPECT_EQ(stored.type, sample.type);
      EXPECT_EQ(stored.shape, make_shape({2, 3}));
      EXPECT_EQ(values_of(read(stored)), values_in(sample));
    }
  }
}

TEST(ReadIdx, ScalarsAndEmptyTensors) {
  EXPECT_EQ(values_of(read(parse_idx(in_memory(idx_bytes(8, {}, "\7"))))), std::vector<double>{7});
  EXPECT_EQ(read(parse_idx(in_memory(idx_bytes(0x0D, {4, 0}, "")))).count(), 0);
  EXPECT_EQ(read(parse_idx_gz(in_memory(deflated(idx_bytes(0x0D, {4, 0}, ""), 31)))).count(), 0);
}

TEST(ReadIdx, OtherFilesAreRefused) {
  EXPECT_NE(idx_complaint("").find("cut short"), std::string::npos);
  EXPECT_NE(idx_complaint(std::string("\0\0\x08", 3)).find("cut short"), std::string::npos);
  EXPECT_NE(idx_complaint(std::string("\0\0\x08\2\0\0\0\1", 8)).find("cut short"), std::string::npos);
  EXPECT_NE(idx_complaint(std::string("\1\0\x08\1", 4)).find("not an idx file"), std::string::npos);
  for (const int code : {0, 1, 0x0A, 0x0F, 0xFF}) {
    EXPECT_NE(idx_complaint(idx_bytes(code, {1}, "x")).find("not an idx file"), std::string::npos);
  }
}

TEST(ReadIdx, TheBytesMustBeExactlyThoseOfTheShape) {
  EXPECT_EQ(idx_complaint(idx_bytes(8, {3}, "abcd")),
            "i.idx: shape (3,) of u8 takes 3 bytes, but 4 are there; the file is damaged or cut short");
  EXPECT_NE(idx_complaint(idx_bytes(8, {3}, "ab")).find("but 2 are there"), std::string::npos);
  EXPECT_NE(idx_complaint(idx_bytes(14, {0xFFFFFFFF, 0xFFFFFFFF}, "ab")).find("impossible shape"), std::string::npos);
}

TEST(ReadIdxGz, DamageIsNoticed) {
  const std::string good = deflated(idx_bytes(8, {5}, "hello"), 31);
  EXPECT_EQ(idx_gz_complaint(good), "no UserError");
  EXPECT_NE(idx_gz_complaint("").find("damaged or cut short"), std::string::npos);
  EXPECT_NE(idx_gz_complaint(good + "x").find("1 bytes after the compressed data"), std::string::npos);
  std::string wrong_checksum = good;
  wrong_checksum[good.size() - 8] ^= 1;
  EXPECT_NE(idx_gz_complaint(wrong_checksum).find("damaged or cut short"), std::string::npos);
  EXPECT_NE(idx_gz_complaint(deflated(idx_bytes(8, {4}, "hello"), 31)).find("more data than its header says"),
            std::string::npos);
  EXPECT_NE(idx_gz_complaint(deflated(idx_bytes(8, {6}, "hello"), 31)).find("damaged or cut short"), std::string::npos);
}

TEST(ReadIdxGz, AShapeThatDeflateCannotReachIsRefusedBeforeAllocating) {
  const std::string bytes = deflated(idx_bytes(8, {0xFFFFFFFF, 0x7FFFFFFF}, "hello"), 31);
  EXPECT_NE(idx_gz_complaint(bytes).find("cannot hold 9223372030412324865 compressed ones"), std::string::npos);
}

/// A gzip file written by hand: a name of `name` bytes, then stored blocks, `empty` of them empty, around five bytes.
std::string gzip_by_hand(std::size_t name, std::size_t empty_before, std::size_t empty_after) {
  const std::string data = idx_bytes(8, {5}, "hello");
  const std::string nothing = '\0' + number(0, 2) + number(0xFFFF, 2);
  std::string bytes = std::string("\x1f\x8b\x08\x08") + number(0, 4) + '\0' + '\xFF' + std::string(name, 'n') + '\0';
  for (std::size_t i = 0; i < empty_before; ++i) bytes += nothing;
  bytes += '\0' + number(data.size(), 2) + number(0xFFFF - data.size(), 2) + data;
  for (std::size_t i = 0; i < empty_after; ++i) bytes += nothing;
  return bytes + '\1' + number(0, 2) + number(0xFFFF, 2) + number(crc_of(data), 4) + number(data.size(), 4);
}

TEST(ReadIdxGz, BytesThatGiveNothingAreNotReadThrough) {
  for (const std::string& sound : {gzip_by_hand(200, 0, 0), gzip_by_hand(0, 1000, 0), gzip_by_hand(0, 0, 1000)})
    EXPECT_EQ(idx_gz_complaint(sound), "no UserError");
  constexpr std::size_t many = 800'000;  // 4 MB of them
  for (const std::string& bomb : {gzip_by_hand(4'000'000, 0, 0), gzip_by_hand(0, many, 0), gzip_by_hand(0, 0, many)})
    EXPECT_EQ(idx_gz_complaint(bomb), "i.idx.gz: the compressed data are damaged or cut short");
}

TEST(ReadIdxGz, HighlyCompressibleDataAreRead) {
  const std::string zeros(1'000'000, '\0');
  const StoredTensor stored = parse_idx_gz(in_memory(deflated(idx_bytes(8, {1000, 1000}, zeros), 31)));
  EXPECT_EQ(stored.shape, make_shape({1000, 1000}));
}

TEST(WriteIdx, IsByteForByteTheFileComposedByHand) {
  std::string written;
  write_idx(tensor_of(DType::f32, make_shape({3}), {0, 1, -2}), into(written));
  EXPECT_EQ(written, idx_bytes(0x0D, {3},
                               number(0, 4) + number(0x3F800000, 4, std::endian::big) +
                                   number(0xC0000000, 4, std::endian::big)));
  written.clear();
  write_idx(tensor_of(DType::boolean, make_shape({2, 1}), {1, 0}), into(written));
  EXPECT_EQ(written, idx_bytes(0x08, {2, 1}, std::string("\1\0", 2)));
}

TEST(WriteIdx, WhatIsWrittenIsReadBackValueForValue) {
  for (const Tensor& tensor : assorted_tensors()) {
    if (!idx_can_hold(tensor.dtype())) continue;
    std::string plain;
    std::string compressed;
    write_idx(tensor, into(plain));
    write_idx_gz(tensor, into(compressed));
    for (const StoredTensor& stored : {parse_idx(in_memory(plain)), parse_idx_gz(in_memory(compressed))}) {
      const Tensor back = read(stored);
      EXPECT_EQ(back.shape(), tensor.shape());
      if (tensor.dtype() == DType::boolean) {
        EXPECT_EQ(values_of(back), values_of(tensor));
      } else {
        EXPECT_EQ(memory_of(back), memory_of(tensor));
      }
    }
  }
}

TEST(WriteIdx, GzipGoesThroughMoreThanOneBuffer) {
  std::mt19937 noise;  // so that it does not become small
  Tensor tensor(DType::i32, make_shape({300'000}));
  std::generate_n(tensor.mutable_data(), tensor.byte_count(), [&] { return static_cast<std::byte>(noise() & 0xFFU); });
  std::string compressed;
  write_idx_gz(tensor, into(compressed));
  EXPECT_GT(compressed.size(), std::size_t{1} << 20U);
  EXPECT_TRUE(memory_of(read(parse_idx_gz(in_memory(compressed)))) == memory_of(tensor));
}

TEST(WriteIdx, HoldsOnlyTheTypesAndExtentsOfTheFormat) {
  std::vector<std::string> held;
  for (const DType dtype : all_dtypes) {
    if (idx_can_hold(dtype)) held.emplace_back(name_of(dtype));
  }
  EXPECT_EQ(held, (std::vector<std::string>{"f32", "f64", "i32", "bool"}));
  EXPECT_TRUE(idx_can_hold(make_shape({2147483647, 0})));
  EXPECT_FALSE(idx_can_hold(make_shape({0, 2147483648})));
}

}  // namespace
}  // namespace einrel
