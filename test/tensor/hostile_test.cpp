#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "tensor/compose.h"
#include "tensor/csv.h"
#include "tensor/idx.h"
#include "tensor/npy.h"
#include "tensor/npz.h"
#include "tensor/safetensors.h"

namespace {

/// Everything that was asked of operator new since it was last set to 0, whether given back or not.
std::atomic<std::size_t> bytes_asked_for{0};

void* counted(std::size_t size) noexcept {
  bytes_asked_for += size;
  return std::malloc(size == 0 ? 1 : size);
}

void* counted_or_throw(std::size_t size) {
  if (void* const block = counted(size)) return block;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return counted_or_throw(size); }
void* operator new[](std::size_t size) { return counted_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t) noexcept { std::free(block); }

namespace einrel {
namespace {

using namespace test;

/// Reads every tensor in a file of one format, every element of it.
using ReadAll = std::function<void(const FileBytes&)>;

void read_npy(const FileBytes& file) { values_of(read(parse_npy(file))); }
void read_idx(const FileBytes& file) { values_of(read(parse_idx(file))); }
void read_idx_gz(const FileBytes& file) { values_of(read(parse_idx_gz(file))); }

void read_npz(const FileBytes& file) {
  const NpzFile npz = parse_npz(file);
  for (std::size_t i = 0; i < npz.names.size(); ++i) values_of(read(open_tensor(npz, i)));
}

void read_safetensors(const FileBytes& file) {
  const SafetensorsFile tensors = parse_safetensors(file);
  for (std::size_t i = 0; i < tensors.names.size(); ++i) values_of(read(open_tensor(tensors, i)));
}

struct HostileCase {
  const char* name;
  ReadAll read_all;
  std::string good;
};

void PrintTo(const HostileCase& test, std::ostream* out) { *out << test.name; }

std::vector<HostileCase> hostile_cases() {
  const std::string small_idx = idx_bytes(8, {2, 3}, "abcdef");
  return {
      {"npy", read_npy, small_npy()},
      {"npy_2_big_endian_fortran", read_npy,
       npy_header_bytes(npy_dictionary(">f8", "(2, 1)", true), 2) + std::string(16, '\x3f')},
      {"npy_bool", read_npy, npy_header_bytes(npy_dictionary("|b1", "(2, 2)")) + "\1\1\1\1"},
      {"npy_u4", read_npy, npy_header_bytes(npy_dictionary("<u4", "(2,)"), 3) + "12345678"},
      {"npz_stored", read_npz, zip_bytes({{"a.npy", small_npy()}, {"b.npy", small_npy()}})},
      {"npz_deflated", read_npz, zip_bytes({deflated_member("a.npy", small_npy())})},
      {"npz_64", read_npz, zip_bytes({{"a.npy", small_npy()}, deflated_member("b.npy", small_npy())}, true)},
      {"safetensors", read_safetensors,
       safetensors_bytes(R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                         R"("b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})",
                         "abcdefghijk")},
      {"idx", read_idx, small_idx},
      {"idx_f64", read_idx, idx_bytes(14, {2}, std::string(16, 'x'))},
      {"idx_gz", read_idx_gz, deflated(small_idx, 31)},
      {"idx_gz_members", read_idx_gz, deflated(small_idx.substr(0, 7), 31) + deflated(small_idx.substr(7), 31)},
  };
}

/// Whether the bytes could be read; anything but success or a UserError that names the file fails the test. So does
/// asking for more memory than `most`.
bool reads_within(std::size_t most, const ReadAll& read_all, const std::string& bytes) {
  const FileBytes file = in_memory(bytes, "hostile.file");
  bytes_asked_for = 0;
  bool complete = false;
  try {
    read_all(file);
    complete = true;
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).find("hostile.file"), 0U) << error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not a UserError: " << error.what();
  }
  EXPECT_LT(bytes_asked_for, most);
  return complete;
}

class Hostile : public testing::TestWithParam<HostileCase> {
 protected:
  /// In 1 MiB: the files here have less than 1 KiB, and deflate expands 1032 times at most.
  static bool reads(const std::string& bytes) {
    return reads_within(std::size_t{1} << 20U, GetParam().read_all, bytes);
  }
};

TEST_P(Hostile, TheGoodFileIsRead) { EXPECT_TRUE(reads(GetParam().good)); }

TEST_P(Hostile, CutAtAnyByteItIsAUserError) {
  const std::string& good = GetParam().good;
  for (std::size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(reads(good.substr(0, size))) << size;
}

// But for .npy, of which numpy.load reads the first array and leaves the rest, and for zeros after gzip's data.
TEST_P(Hostile, WithBytesAppendedItIsAUserError) {
  const std::string_view name = GetParam().name;
  const bool first_is_read = name.starts_with("npy");
  EXPECT_EQ(reads(GetParam().good + '\0'), first_is_read || name.starts_with("idx_gz"));
  for (const std::string& tail : {std::string("x"), std::string(100, ' ')}) {
    EXPECT_EQ(reads(GetParam().good + tail), first_is_read);
  }
}

TEST_P(Hostile, AnyFlippedBitIsReadOrAUserError) {
  std::string bytes = GetParam().good;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      reads(bytes);
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
    }
  }
}

TEST_P(Hostile, AnyFourBytesOfAllOnesAreReadOrAUserError) {
  for (std::size_t at = 0; at + 4 <= GetParam().good.size(); ++at) {
    std::string bytes = GetParam().good;
    reads(bytes.replace(at, 4, "\xff\xff\xff\xff"));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Hostile, testing::ValuesIn(hostile_cases()),
                         [](const auto& instance) { return std::string(instance.param.name); });

// One member of which numpy.load reads the first bytes only.
TEST(HostileMemory, WhatStandsBehindTheElementsTakesNone) {
  const std::string zeros(std::size_t{1} << 26U, '\0');
  const FileBytes file = in_memory(zip_bytes({deflated_member("a.npy", small_npy() + zeros)}), "hostile.file");
  bytes_asked_for = 0;
  read_npz(file);
  EXPECT_LT(bytes_asked_for, std::size_t{1} << 17U);
}

// Without a length in front, a table that is cut may be one that has fewer rows or digits.
TEST(HostileTable, WhateverStandsThereIsReadOrAUserError) {
  for (const std::string columns : {"", "1", "2..3", "b", "0", "..", "b..b"}) {
    for (const DType dtype : {DType::f32, DType::i64}) {
      const ReadAll read_table = [&](const FileBytes& file) { values_of(parse_csv(file, columns, dtype)); };
      for (const std::string good : {"a,b,c\n1,2,3\n4,5,6\n", "\"a\";b;c\r\n1;-2;3e1\r\n\r\n+4;nan;6", "1\t2\t3"}) {
        const auto reads = [&](const std::string& bytes) { return reads_within(1U << 16U, read_table, bytes); };
        for (std::size_t size = 0; size < good.size(); ++size) reads(good.substr(0, size));
        for (std::size_t at = 0; at < good.size(); ++at) {
          for (const char byte : {'\0', '\n', ',', ';', '"', '.', '-', ' ', 'x', '9', '\xff'}) {
            std::string bytes = good;
            bytes[at] = byte;
            reads(bytes);
            reads(good.substr(0, at) + byte + good.substr(at));
          }
        }
      }
    }
  }
}

// However many fields the first line has, and however many lines there are.
TEST(HostileTable, RoomForRowsIsNoMoreThanTheFileHas) {
  constexpr std::size_t many = 100'000;
  std::string wide = "1";
  for (std::size_t field = 1; field < many; ++field) wide += ",1";
  const ReadAll read_table = [](const FileBytes& file) { values_of(parse_csv(file, "", DType::f64)); };
  for (const std::string& rest : {std::string(many, '\n'), std::string(many, '1') + std::string(many, '\n')}) {
    const std::string bytes = wide + "\n" + rest;
    reads_within(64 * bytes.size(), read_table, bytes);
  }
  EXPECT_FALSE(reads_within(64 * wide.size(), read_table, wide + "\n1\n"));
}

TEST(HostileMemory, IsCounted) {
  bytes_asked_for = 0;
  const std::vector<char> block(1 << 20U);
  EXPECT_GE(bytes_asked_for, block.size());
}

}  // namespace
}  // namespace einrel
