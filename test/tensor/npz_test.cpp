#include "tensor/npz.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "tensor/bytes.h"
#include "tensor/compose.h"
#include "tensor/npy.h"

namespace einrel {
namespace {

using namespace test;
using Names = std::vector<std::string>;

const std::vector<double> small_values{0, 1, -2};

std::string open_all(const std::string& bytes) {
  return user_error_of([&] {
    const NpzFile npz = parse_npz(in_memory(bytes, "w.npz"));
    for (std::size_t i = 0; i < npz.names.size(); ++i) open_tensor(npz, i);
  });
}

TEST(ReadNpz, StoredAndDeflatedMembersByName) {
  const std::string bytes = zip_bytes({{"W1.npy", small_npy()}, deflated_member("layer/W2.npy", small_npy())});
  const NpzFile npz = parse_npz(in_memory(bytes));
  EXPECT_EQ(npz.names, (Names{"W1", "layer/W2"}));
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_EQ(values_of(read(open_tensor(npz, i))), small_values);
    EXPECT_EQ(open_tensor(npz, i).name, "test file:" + npz.names[i]);
  }
}

TEST(ReadNpz, StoredMembersAreViewsOfTheFile) {
  const FileBytes file = in_memory(zip_bytes({{"a.npy", small_npy()}}));
  const Tensor tensor = read(open_tensor(parse_npz(file), 0));
  EXPECT_GE(tensor.data(), file.bytes.data());
  EXPECT_LT(tensor.data(), file.bytes.data() + file.bytes.size());
}

TEST(ReadNpz, DeflatedElementsOutliveTheFile) {
  Tensor tensor;
  tensor = read(open_tensor(parse_npz(in_memory(zip_bytes({deflated_member("a.npy", small_npy())}))), 0));
  EXPECT_EQ(values_of(tensor), small_values);
}

TEST(ReadNpz, Zip64InTheMembersOrInTheWholeArchive) {
  HandMember wide{"a.npy", small_npy()};
  wide.zip64 = true;
  for (const std::string& bytes : {zip_bytes({wide, {"b.npy", small_npy()}}),
                                   zip_bytes({{"a.npy", small_npy()}, deflated_member("b.npy", small_npy())}, true)}) {
    const NpzFile npz = parse_npz(in_memory(bytes));
    ASSERT_EQ(npz.names, (Names{"a", "b"}));
    EXPECT_EQ(values_of(read(open_tensor(npz, 0))), small_values);
    EXPECT_EQ(values_of(read(open_tensor(npz, 1))), small_values);
  }
}

TEST(ReadNpz, AnArchiveMayEndWithAComment) {
  for (const std::string& comment : {std::string("hello"), std::string(65535, 'c'), "PK\5\6" + std::string(30, '\0')}) {
    EXPECT_EQ(parse_npz(in_memory(zip_bytes({{"a.npy", small_npy()}}, false, comment))).names, Names{"a"});
  }
}

TEST(ReadNpz, OtherMembersArePassedOver) {
  EXPECT_EQ(parse_npz(in_memory(zip_bytes({{"read.me", "hi"}, {"folder/", ""}, {"a.npy", small_npy()}}))).names,
            Names{"a"});
  EXPECT_EQ(parse_npz(in_memory(zip_bytes({}))).names, Names{});
}

TEST(ReadNpz, MembersWithoutTheEndingAreTensorsIfTheyBeginLikeOne) {
  const std::string bytes = zip_bytes({{"W1", small_npy()},
                                       deflated_member("layer/W2", small_npy()),
                                       deflated_member("notes", "hello"),
                                       {"empty", ""},
                                       {"b.npy", small_npy()}});
  const NpzFile npz = parse_npz(in_memory(bytes));
  EXPECT_EQ(npz.names, (Names{"W1", "layer/W2", "b"}));
  for (const std::size_t i : {0U, 1U, 2U}) EXPECT_EQ(values_of(read(open_tensor(npz, i))), small_values);
}

// As numpy.load does: the member of the very name comes first.
TEST(ReadNpz, WithAndWithoutTheEndingAreTwoTensors) {
  const std::string other = npy_header(DType::f32, make_shape({0}));
  const NpzFile npz = parse_npz(in_memory(zip_bytes({{"a.npy", other}, {"a", small_npy()}})));
  EXPECT_EQ(npz.names, (Names{"a.npy", "a"}));
  EXPECT_EQ(values_of(read(open_tensor(npz, 1))), small_values);
}

TEST(ReadNpz, TwoMembersOfOneNameAreRefused) {
  EXPECT_EQ(open_all(zip_bytes({{"a.npy", small_npy()}, {"a.npy", small_npy()}})),
            "w.npz: damaged zip archive: two members are named 'a.npy'");
}

TEST(ReadNpz, NamesThatLeadOutsideAFolderAreRefused) {
  for (const std::string& name :
       {std::string("/etc/a.npy"), std::string("../a.npy"), std::string("b/../../a.npy"), std::string("b\\a.npy"),
        std::string("a\n.npy"), std::string("a\0b.npy", 7), std::string("\xff.npy"), std::string("")}) {
    EXPECT_NE(open_all(zip_bytes({{name, small_npy()}})).find("is no name for a member"), std::string::npos) << name;
  }
  for (const std::string name : {"a..b.npy", "...npy", "l/0/w.npy", "\xc3\xa4.npy", "w:0.npy"}) {
    EXPECT_EQ(open_all(zip_bytes({{name, small_npy()}})), "no UserError") << name;
  }
}

/// An archive of one deflated member after `change` has been at work on it.
std::string changed(const std::function<void(HandMember&)>& change) {
  HandMember member = deflated_member("a.npy", small_npy());
  change(member);
  return zip_bytes({member});
}

TEST(ReadNpz, MembersThatCannotBeReadSayWhy) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {changed([](HandMember& m) { m.flags = 1; }), "w.npz:a: encrypted members are not read"},
      {changed([](HandMember& m) { m.method = 12; }), "w.npz:a: compression method 12 is not supported"},
      {changed([](HandMember& m) { m.crc ^= 1U; }), "w.npz:a: its checksum (CRC) is wrong"},
      {changed([](HandMember& m) { m.local_name = "b.npy"; }), "its header and the directory differ"},
      {changed([](HandMember& m) { m.method = 0; }), "a stored member with two sizes"},
      {changed([](HandMember& m) { m.size -= 1; }), "w.npz:a: its header asks for"},
      {changed([](HandMember& m) { m.size += 1; }), "w.npz:a: the compressed data are damaged or cut short"},
      {changed([](HandMember& m) { m.bytes.resize(m.bytes.size() / 2); }), "damaged or cut short"},
      {changed([](HandMember& m) { m.bytes += "tail"; }), "w.npz:a: 4 bytes after the compressed data"},
      {changed([](HandMember& m) { m.bytes[0] = '\7'; }), "damaged or cut short"},
      {changed([](HandMember& m) { m.bytes.clear(); }), "damaged or cut short"},
  };
  for (const auto& [bytes, expected] : cases) {
    EXPECT_NE(open_all(bytes).find(expected), std::string::npos) << open_all(bytes);
  }
}

TEST(ReadNpz, BytesBehindTheElementsAreLeftAlone) {
  for (const std::string& behind : {std::string("x"), small_npy(), std::string(std::size_t{1} << 20U, '\0')}) {
    const std::string contents = small_npy() + behind;
    for (const HandMember& member : {HandMember{"a.npy", contents}, deflated_member("a.npy", contents)}) {
      const NpzFile npz = parse_npz(in_memory(zip_bytes({member})));
      EXPECT_EQ(values_of(read(open_tensor(npz, 0))), small_values);
    }
  }
}

/// Of `contents`, with a directory that gives it `size` bytes.
std::string said_to_hold(const std::string& contents, std::uint64_t size) {
  HandMember member = deflated_member("a.npy", contents);
  member.size = size;
  return zip_bytes({member});
}

TEST(ReadNpz, ADirectoryThatGivesAMemberAnotherSizeIsRefused) {
  const std::uint64_t right = small_npy().size();
  for (std::uint64_t size = 0; size < right; ++size)
    EXPECT_NE(open_all(said_to_hold(small_npy(), size)).find("; the file is damaged or cut short"), std::string::npos);
  EXPECT_EQ(open_all(said_to_hold(small_npy() + "x", right)), "w.npz:a: more data than its header says");
  for (const std::uint64_t more : {1U, 1000U}) {
    EXPECT_EQ(open_all(said_to_hold(small_npy(), right + more)),
              "w.npz:a: the compressed data are damaged or cut short");
  }
}

TEST(ReadNpz, AHeaderThatAsksForMoreThanThereIsIsRefused) {
  const std::string header = npy_header(DType::f32, make_shape({1'000'000}));
  const std::uint64_t asked = header.size() + 4'000'000;
  EXPECT_EQ(open_all(said_to_hold(header, header.size())), "w.npz:a: its header asks for " + std::to_string(asked) +
                                                               " bytes, but the directory of the archive gives it " +
                                                               std::to_string(header.size()) +
                                                               "; the file is damaged or cut short");
  EXPECT_NE(open_all(said_to_hold(header, asked)).find("cannot hold"), std::string::npos);
  const std::string long_text = npy_header_bytes(npy_dictionary("<f4", "(3,)"), 2, std::size_t{1} << 21U);
  EXPECT_NE(open_all(said_to_hold(long_text, long_text.size())).find("bytes long"), std::string::npos);
}

TEST(ReadNpz, ASizeThatDeflateCannotReachIsRefusedBeforeAllocating) {
  for (const std::uint64_t size : {std::uint64_t{1} << 30U, std::uint64_t{1} << 40U, ~std::uint64_t{0}}) {
    const std::string bytes = changed([&](HandMember& m) {
      m.size = size;
      m.zip64 = true;
    });
    EXPECT_NE(open_all(bytes).find("cannot hold " + std::to_string(size) + " compressed"), std::string::npos);
  }
}

TEST(ReadNpz, MembersThatShareBytesAreRefused) {
  // The second entry of the directory points at the first member's header.
  std::string bytes = zip_bytes({{"a.npy", small_npy()}, {"b.npy", small_npy()}});
  const std::size_t second = bytes.rfind("PK\1\2");
  bytes.replace(second + 42, 4, number(0, 4));
  EXPECT_NE(open_all(bytes).find("does not lie where the directory says"), std::string::npos);
}

TEST(ReadNpz, AMemberThatReachesIntoTheNextIsRefused) {
  std::string bytes = zip_bytes({{"a.npy", small_npy()}, {"b.npy", small_npy()}});
  const std::size_t first = bytes.find("PK\1\2");
  for (const std::size_t size_field : {20U, 24U}) {
    bytes.replace(first + size_field, 4, number(small_npy().size() + 10, 4));
  }
  EXPECT_NE(open_all(bytes).find("does not lie where the directory says"), std::string::npos) << open_all(bytes);
}

TEST(ReadNpz, AnEndRecordThatLiesIsRefused) {
  const std::string good = zip_bytes({{"a.npy", small_npy()}});
  const std::size_t end = good.size() - 22;
  const auto with = [&](std::size_t at, const std::string& field) {
    std::string bytes = good;
    return open_all(bytes.replace(end + at, field.size(), field));
  };
  EXPECT_NE(with(10, number(2, 2)).find("lists 1 members, not 2"), std::string::npos);
  EXPECT_NE(with(10, number(0xFFFF, 2)).find("no zip64 end record"), std::string::npos);
  EXPECT_NE(with(4, number(1, 2)).find("several parts"), std::string::npos);
  EXPECT_NE(with(12, number(end, 4)).find("lies outside the file"), std::string::npos);
  EXPECT_NE(with(16, number(0, 4)).find("damaged zip archive"), std::string::npos);
  EXPECT_NE(with(20, number(1, 2)).find("not a zip archive"), std::string::npos);
}

TEST(WriteNpz, IsByteForByteTheArchiveComposedByHand) {
  const TemporaryFolder folder;
  const Tensor first = tensor_of(DType::f32, make_shape({3}), small_values);
  const Tensor second = tensor_of(DType::i64, {}, {7});
  AtomicFile file(folder / "w.npz");
  write_npz({{"W1", first}, {"b/\xc3\xa4", second}}, file);
  file.commit();

  HandMember a{"W1.npy", npy_header(DType::f32, first.shape()) + memory_of(first)};
  HandMember b{"b/\xc3\xa4.npy", npy_header(DType::i64, {}) + memory_of(second)};
  b.flags = 0x0800;  // the name is UTF-8
  std::string expected = zip_bytes({a, b});
  for (std::size_t at = expected.find("PK\1\2"); at != std::string::npos; at = expected.find("PK\1\2", at + 1)) {
    expected.replace(at + 4, 2, number(0x032D, 2));            // made on Unix, version 4.5
    expected.replace(at + 38, 4, number(0100644U << 16U, 4));  // rw-r--r--
  }
  EXPECT_EQ(contents_of(folder / "w.npz"), expected);
}

TEST(WriteNpz, WhatIsWrittenIsReadBackBitForBit) {
  const TemporaryFolder folder;
  std::vector<NamedTensor> tensors;
  for (const Tensor& tensor : assorted_tensors()) tensors.push_back({"t" + std::to_string(tensors.size()), tensor});
  AtomicFile file(folder / "w.npz");
  write_npz(tensors, file);
  file.commit();
  const NpzFile npz = parse_npz(map_file(folder / "w.npz"));
  ASSERT_EQ(npz.names.size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(npz.names[i], tensors[i].name);
    const Tensor back = read(open_tensor(npz, i));
    EXPECT_EQ(back.shape(), tensors[i].tensor.shape());
    EXPECT_EQ(memory_of(back), memory_of(tensors[i].tensor));
    // Readers that verify it, unlike this one, must find the right checksum.
    EXPECT_EQ(npz.members[i].crc, crc_of(as_text(open_zip_member(npz.file, npz.members[i], "", {}).bytes)));
  }
}

TEST(WriteNpz, MoreMembersThan16BitsCountAreReadBack) {
  constexpr std::size_t count = 65'600;
  std::vector<ZipMember> members;
  std::string bytes;
  const std::string npy = small_npy();
  for (std::size_t i = 0; i < count; ++i) {
    members.push_back({.name = std::to_string(i) + ".npy",
                       .crc = 0,
                       .compressed_size = npy.size(),
                       .size = npy.size(),
                       .offset = bytes.size()});
    bytes += zip_local_header(members.back()) + npy;
  }
  bytes += zip_directory(members, bytes.size());
  const NpzFile npz = parse_npz(in_memory(bytes));
  ASSERT_EQ(npz.names.size(), count);
  EXPECT_EQ(values_of(read(open_tensor(npz, count - 1))), small_values);
}

TEST(WriteNpz, SizesAndOffsetsBeyond32BitsGoIntoTheZip64Records) {
  constexpr std::uint64_t size = std::uint64_t{5} << 32U;
  constexpr std::uint64_t offset = std::uint64_t{7} << 32U;
  const ZipMember member{.name = "a.npy", .crc = 9, .compressed_size = size, .size = size, .offset = offset};
  const std::string wide = number(0xFFFFFFFF, 4);
  const std::string common = number(45, 2) + number(0, 2) + number(0, 2) + number(0, 2) + number(0x21, 2) +
                             number(9, 4) + wide + wide + number(5, 2);
  EXPECT_EQ(zip_local_header(member), "PK\3\4" + common + number(20, 2) + "a.npy" + number(1, 2) + number(16, 2) +
                                          number(size, 8) + number(size, 8));

  const std::string entry = "PK\1\2" + number(0x032D, 2) + common + number(28, 2) + number(0, 2) + number(0, 2) +
                            number(0, 2) + number(0100644U << 16U, 4) + wide + "a.npy" + number(1, 2) + number(24, 2) +
                            number(size, 8) + number(size, 8) + number(offset, 8);
  const std::uint64_t begin = offset + size;
  const std::string end64 = "PK\6\6" + number(44, 8) + number(45, 2) + number(45, 2) + number(0, 4) + number(0, 4) +
                            number(1, 8) + number(1, 8) + number(entry.size(), 8) + number(begin, 8);
  const std::string locator = "PK\6\7" + number(0, 4) + number(begin + entry.size(), 8) + number(1, 4);
  const std::string end = "PK\5\6" + number(0, 4) + number(0xFFFF, 2) + number(0xFFFF, 2) + wide + wide + number(0, 2);
  EXPECT_EQ(zip_directory({member}, begin), entry + end64 + locator + end);
}

}  // namespace
}  // namespace einrel
