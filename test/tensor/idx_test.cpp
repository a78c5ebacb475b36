#include "tensor/idx.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
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

/// gzip of several members: `bytes` cut before these places.
std::string in_members(const std::string& bytes, const std::vector<std::size_t>& places) {
  std::string members;
  std::size_t begin = 0;
  for (const std::size_t place : places) {
    members += deflated(bytes.substr(begin, place - begin), 31);
    begin = place;
  }
  return members + deflated(bytes.substr(begin), 31);
}

TEST(ReadIdxGz, SeveralMembersAreReadAsOne) {
  const std::string bytes = idx_bytes(8, {5}, "hello");
  const auto read_values = [](const std::string& gzip) { return values_of(read(parse_idx_gz(in_memory(gzip)))); };
  const std::vector<double> expected = read_values(deflated(bytes, 31));
  for (std::size_t first = 0; first <= bytes.size(); ++first) {
    for (std::size_t second = first; second <= bytes.size(); ++second) {
      EXPECT_EQ(read_values(in_members(bytes, {first, second})), expected) << first << " " << second;
    }
  }
  const std::string empty = deflated("", 31);
  EXPECT_EQ(read_values(empty + empty + deflated(bytes, 31) + empty), expected);
  const std::string nothing = idx_bytes(8, {0}, "");
  EXPECT_EQ(read_values(in_members(nothing, {3}) + empty), std::vector<double>{});
}

TEST(ReadIdxGz, GoesIntoAFolderThatNothingIsLeftIn) {
  const TemporaryFolder folder;
  const FileBytes file = in_memory(deflated(idx_bytes(8, {5}, "hello"), 31));
  const StoredTensor stored = parse_idx_gz(file, folder.path());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(values_of(read(stored)), values_of(read(parse_idx_gz(file))));
  EXPECT_EQ(read(parse_idx_gz(in_memory(deflated(idx_bytes(8, {0}, ""), 31)), folder.path())).count(), 0);
  EXPECT_NE(user_error_of([&] { parse_idx_gz(file, folder / "absent"); }).find("decompressed there, to 5 "),
            std::string::npos);
}

TEST(ReadIdxGz, ZerosMayFollowTheLastMember) {
  const std::string good = in_members(idx_bytes(8, {5}, "hello"), {10});
  for (const std::size_t count : {std::size_t{1}, std::size_t{512}, std::size_t{1} << 20U})
    EXPECT_EQ(idx_gz_complaint(good + std::string(count, '\0')), "no UserError");
  EXPECT_EQ(idx_gz_complaint(good + std::string(5, '\0') + "x"), "i.idx.gz: 6 bytes after the compressed data");
  EXPECT_EQ(idx_gz_complaint(good + std::string(5, '\0') + good),
            "i.idx.gz: " + std::to_string(5 + good.size()) + " bytes after the compressed data");
  EXPECT_EQ(idx_gz_complaint(good + "\x1f"), "i.idx.gz: 1 bytes after the compressed data");
}

TEST(ReadIdxGz, DamageInALaterMemberIsNoticed) {
  const std::string bytes = idx_bytes(8, {5}, "hello");
  const std::string good = in_members(bytes, {10});
  for (std::size_t size = deflated(bytes.substr(0, 10), 31).size(); size < good.size(); ++size)
    EXPECT_NE(idx_gz_complaint(good.substr(0, size)), "no UserError") << size;
  std::string wrong_checksum = good;
  wrong_checksum[good.size() - 8] ^= 1;
  EXPECT_NE(idx_gz_complaint(wrong_checksum).find("damaged or cut short"), std::string::npos);
  EXPECT_NE(idx_gz_complaint(good + deflated("!", 31)).find("more data than its header says"), std::string::npos);
  const std::string zeros = deflated(std::string(std::size_t{1} << 26U, '\0'), 31);
  EXPECT_NE(idx_gz_complaint(good + zeros).find("more data than its header says"), std::string::npos);
}

TEST(ReadIdxGz, EmptyMembersAreNotReadThrough) {
  std::string many;
  while (many.size() <= std::size_t{1} << 21U) many += deflated("", 31);
  const std::string good = deflated(idx_bytes(8, {5}, "hello"), 31);
  for (const std::string& bomb : {many + good, good + many})
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
