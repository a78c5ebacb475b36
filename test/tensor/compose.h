#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "tensor/stored_tensor.h"
#include "tensor/stream.h"
#include "tensor/tensor.h"

/// Files written down byte by byte after their formats' descriptions, as the oracle for readers and writers.
namespace einrel::test {

/// `value` as `size` bytes.
inline std::string number(std::uint64_t value, std::size_t size, std::endian order = std::endian::little) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t place = order == std::endian::little ? i : size - 1 - i;
    bytes += static_cast<char>((value >> (8 * place)) & 0xFFU);
  }
  return bytes;
}

/// In a block of exactly that size, so that a sanitizer sees every byte read beyond it.
inline FileBytes in_memory(std::string_view contents, std::string name = "test file") {
  const auto all = std::as_bytes(std::span(contents));
  auto block = std::make_shared<std::vector<std::byte>>(all.begin(), all.end());
  const std::span<const std::byte> bytes(block->data(), block->size());
  return {std::move(name), bytes, std::move(block)};
}

/// A sink that appends to `to`.
inline ByteSink into(std::string& to) {
  return
      [&to](std::span<const std::byte> bytes) { to.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); };
}

/// What a call complains about, or a text that says that it did not.
template <class Call>
std::string user_error_of(Call&& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no UserError";
}

/// Six values of one element type and the bits that store them (IEEE 754 and two's complement, by hand).
struct TypeSample {
  StoredType type;
  std::string_view npy;
  std::string_view safetensors;
  int idx;  ///< the code in idx files, 0: none
  std::vector<std::pair<double, std::uint64_t>> values;
};

inline std::vector<TypeSample> type_samples() {
  return {{StoredType::f32,
           "f4",
           "F32",
           0x0D,
           {{0, 0}, {1, 0x3F800000}, {-2, 0xC0000000}, {0.5, 0x3F000000}, {65504, 0x477FE000}, {-0.15625, 0xBE200000}}},
          {StoredType::f64,
           "f8",
           "F64",
           0x0E,
           {{0, 0},
            {1, 0x3FF0000000000000},
            {-2, 0xC000000000000000},
            {0.5, 0x3FE0000000000000},
            {3, 0x4008000000000000},
            {-0.15625, 0xBFC4000000000000}}},
          {StoredType::bf16,
           "V2",
           "BF16",
           0,
           {{0, 0}, {1, 0x3F80}, {-2, 0xC000}, {0.5, 0x3F00}, {3, 0x4040}, {-0.15625, 0xBE20}}},
          {StoredType::f16,
           "f2",
           "F16",
           0,
           {{0, 0}, {1, 0x3C00}, {-2, 0xC000}, {0.5, 0x3800}, {65504, 0x7BFF}, {-0.15625, 0xB100}}},
          {StoredType::i32,
           "i4",
           "I32",
           0x0C,
           {{0, 0}, {1, 1}, {-2, 0xFFFFFFFE}, {2147483647, 0x7FFFFFFF}, {-2147483648.0, 0x80000000}, {258, 0x102}}},
          {StoredType::i64,
           "i8",
           "I64",
           0,
           {{0, 0},
            {1, 1},
            {-2, 0xFFFFFFFFFFFFFFFE},
            {9007199254740992.0, 0x20000000000000},
            {-9007199254740992.0, 0xFFE0000000000000},
            {258, 0x102}}},
          {StoredType::boolean, "b1", "BOOL", 0, {{0, 0}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}}},
          {StoredType::u8, "u1", "U8", 0x08, {{0, 0}, {1, 1}, {255, 0xFF}, {128, 0x80}, {127, 0x7F}, {2, 2}}},
          {StoredType::i8, "i1", "I8", 0x09, {{0, 0}, {1, 1}, {-2, 0xFE}, {127, 0x7F}, {-128, 0x80}, {-1, 0xFF}}},
          {StoredType::u16, "u2", "U16", 0, {{0, 0}, {1, 1}, {65535, 0xFFFF}, {32768, 0x8000}, {258, 0x102}, {2, 2}}},
          {StoredType::i16,
           "i2",
           "I16",
           0x0B,
           {{0, 0}, {1, 1}, {-2, 0xFFFE}, {32767, 0x7FFF}, {-32768, 0x8000}, {258, 0x102}}},
          {StoredType::u32,
           "u4",
           "U32",
           0,
           {{0, 0}, {1, 1}, {4294967295.0, 0xFFFFFFFF}, {2147483648.0, 0x80000000}, {258, 0x102}, {2, 2}}}};
}

inline std::vector<double> values_in(const TypeSample& sample) {
  std::vector<double> values;
  for (const auto& [value, bits] : sample.values) values.push_back(value);
  return values;
}

inline std::string element_bytes(const TypeSample& sample, std::endian order) {
  std::string bytes;
  for (const auto& [value, bits] : sample.values) bytes += number(bits, size_of(sample.type), order);
  return bytes;
}

/// The elements in row-major order as they lie in memory, found by dividing up the element's number.
inline std::string memory_of(const Tensor& tensor) {
  const std::size_t size = size_of(tensor.dtype());
  std::string bytes;
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    std::int64_t rest = i;
    std::int64_t offset = 0;
    for (std::size_t d = tensor.rank(); d-- > 0;) {
      offset += rest % tensor.shape()[d].value() * tensor.strides()[d];
      rest /= tensor.shape()[d].value();
    }
    bytes.append(reinterpret_cast<const char*>(tensor.data()) + offset * static_cast<std::int64_t>(size), size);
  }
  return bytes;
}

/// Each byte different from its neighbours, so that no two elements of a small tensor are equal.
inline Tensor counting_tensor(DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  for (std::int64_t i = 0; i < tensor.byte_count(); ++i) {
    tensor.mutable_data()[i] = static_cast<std::byte>(dtype == DType::boolean ? i % 3 % 2 : i * 37 + 11);
  }
  return tensor;
}

/// One tensor of every dtype as it may come to a writer: row-major, transposed, broadcast, reversed, with
/// every second element, scalar and empty.
inline std::vector<Tensor> assorted_tensors() {
  std::vector<Tensor> tensors;
  for (const DType dtype : all_dtypes) {
    const auto size = static_cast<std::int64_t>(size_of(dtype));
    const Tensor base = counting_tensor(dtype, make_shape({4, 3, 2}));
    const auto owner = std::make_shared<Tensor>(base);
    tensors.push_back(base);
    tensors.push_back(base.permuted({2, 0, 1}));
    tensors.emplace_back(dtype, make_shape({5, 4}), Strides{0, 6}, base.data(), owner);
    tensors.emplace_back(dtype, make_shape({4, 6}), Strides{-6, -1}, base.data() + 23 * size, owner);
    tensors.emplace_back(dtype, make_shape({2, 1, 3}), Strides{12, 99, 2}, base.data(), owner);
    tensors.push_back(counting_tensor(dtype, {}));
    tensors.push_back(counting_tensor(dtype, make_shape({3, 0, 2})));
  }
  return tensors;
}

/// The header of an .npy file; `padding` goes between the dictionary and the newline.
inline std::string npy_header_bytes(std::string_view dictionary, int version = 1, std::size_t padding = 0) {
  const std::string text = std::string(dictionary) + std::string(padding, ' ') + "\n";
  return std::string("\x93NUMPY") + static_cast<char>(version) + '\0' + number(text.size(), version == 1 ? 2 : 4) +
         text;
}

inline std::string npy_dictionary(std::string_view descr, std::string_view shape, bool fortran = false) {
  return "{'descr': '" + std::string(descr) + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + std::string(shape) + ", }";
}

/// f32 values 0, 1, -2 as numpy.save writes them.
inline std::string small_npy() {
  return npy_header_bytes(npy_dictionary("<f4", "(3,)"), 1, 60) + number(0, 4) + number(0x3F800000, 4) +
         number(0xC0000000, 4);
}

/// CRC-32 bit by bit, from its polynomial.
inline std::uint32_t crc_of(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

/// Compressed by zlib: window_bits -15 is raw deflate, 31 is gzip.
inline std::string deflated(std::string_view bytes, int window_bits) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// A member as zip_bytes shall write it down; tests change fields to make archives that lie.
struct HandMember {
  std::string name;
  std::string bytes;  ///< as they stand in the archive
  std::uint64_t size = bytes.size();
  std::uint32_t crc = crc_of(bytes);
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
  bool zip64 = false;
  std::string local_name = name;
};

inline HandMember deflated_member(const std::string& name, const std::string& contents) {
  HandMember member{name, deflated(contents, -15)};
  member.size = contents.size();
  member.crc = crc_of(contents);
  member.method = 8;
  return member;
}

/// A zip archive after PKWARE's APPNOTE 4.3. With zip64: all sizes and offsets in the 64-bit records.
inline std::string zip_bytes(const std::vector<HandMember>& members, bool zip64 = false,
                             const std::string& comment = "") {
  std::string archive;
  std::string directory;
  for (const HandMember& member : members) {
    const bool wide = zip64 || member.zip64;
    const std::string sizes =
        number(wide ? 0xFFFFFFFF : member.bytes.size(), 4) + number(wide ? 0xFFFFFFFF : member.size, 4);
    const std::string common = number(wide ? 45 : 20, 2) + number(member.flags, 2) + number(member.method, 2) +
                               number(0, 2) + number(0x21, 2) + number(member.crc, 4) + sizes;
    const std::string wide_sizes = number(member.size, 8) + number(member.bytes.size(), 8);
    const std::string local_extra = wide ? number(1, 2) + number(16, 2) + wide_sizes : "";
    // An unrelated extra field before the one that matters.
    const std::string extra = wide ? number(0x5455, 2) + number(1, 2) + "t" + number(1, 2) + number(24, 2) +
                                         wide_sizes + number(archive.size(), 8)
                                   : "";
    directory += "PK\1\2" + number(0x0314, 2) + common + number(member.name.size(), 2) + number(extra.size(), 2) +
                 number(0, 2) + number(0, 2) + number(0, 2) + number(0, 4) +
                 number(wide ? 0xFFFFFFFF : archive.size(), 4) + member.name + extra;
    archive += "PK\3\4" + common + number(member.local_name.size(), 2) + number(local_extra.size(), 2) +
               member.local_name + local_extra + member.bytes;
  }
  const std::uint64_t offset = archive.size();
  archive += directory;
  const std::uint64_t end64 = archive.size();
  if (zip64) {
    archive += "PK\6\6" + number(44, 8) + number(45, 2) + number(45, 2) + number(0, 4) + number(0, 4) +
               number(members.size(), 8) + number(members.size(), 8) + number(directory.size(), 8) + number(offset, 8);
    archive += "PK\6\7" + number(0, 4) + number(end64, 8) + number(1, 4);
  }
  return archive + "PK\5\6" + number(0, 2) + number(0, 2) + number(zip64 ? 0xFFFF : members.size(), 2) +
         number(zip64 ? 0xFFFF : members.size(), 2) + number(zip64 ? 0xFFFFFFFF : directory.size(), 4) +
         number(zip64 ? 0xFFFFFFFF : offset, 4) + number(comment.size(), 2) + comment;
}

inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  return number(header.size(), 8) + header + data;
}

inline std::string idx_bytes(int code, const std::vector<std::uint32_t>& extents, const std::string& data) {
  std::string bytes{'\0', '\0', static_cast<char>(code), static_cast<char>(extents.size())};
  for (const std::uint32_t extent : extents) bytes += number(extent, 4, std::endian::big);
  return bytes + data;
}

}  // namespace einrel::test
