#include "tensor/stored_tensor.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "base/error.h"
#include "tensor/bytes.h"
#include "tensor/convert.h"
#include "tensor/rows.h"

namespace einrel {
namespace {

/// `bits`: how many binary digits the values of an integer need that is widened, 0 for types that are not.
struct TypeRow {
  std::string_view name;
  std::size_t size;
  DType natural;
  int bits;
};

constexpr std::array<TypeRow, 12> types{{{"f32", 4, DType::f32, 0},
                                         {"f64", 8, DType::f64, 0},
                                         {"bf16", 2, DType::bf16, 0},
                                         {"f16", 2, DType::f16, 0},
                                         {"i32", 4, DType::i32, 31},
                                         {"i64", 8, DType::i64, 0},
                                         {"bool", 1, DType::boolean, 0},
                                         {"u8", 1, DType::i32, 8},
                                         {"i8", 1, DType::i32, 8},
                                         {"u16", 2, DType::i32, 16},
                                         {"i16", 2, DType::i32, 16},
                                         {"u32", 4, DType::i64, 32}}};

const TypeRow& row_of(StoredType type) { return types.at(static_cast<std::size_t>(type)); }

/// Every integer of this many binary digits is exact in `dtype`.
int exact_bits(DType dtype) {
  switch (dtype) {
    case DType::f32: return std::numeric_limits<float>::digits;
    case DType::f64: return std::numeric_limits<double>::digits;
    case DType::bf16: return 8;
    case DType::f16: return 11;
    case DType::i32: return std::numeric_limits<std::int32_t>::digits;
    case DType::i64: return std::numeric_limits<std::int64_t>::digits;
    case DType::boolean: return 1;
  }
  throw Bug("a dtype outside its enumeration");
}

template <class From, class To>
void copy_elements(const StoredTensor& stored, std::byte* to) {
  for_each_row(stored.shape, stored.strides, [&](std::int64_t offset, std::int64_t count, std::int64_t stride) {
    const auto step = stride * static_cast<std::int64_t>(sizeof(From));
    const std::byte* from = stored.data + offset * static_cast<std::int64_t>(sizeof(From));
    for (std::int64_t i = 0; i < count; ++i) {
      const auto value = load_number<From>(from + i * step, stored.order);
      To converted;
      if constexpr (std::is_same_v<From, To>) {
        converted = value;
      } else {
        converted = narrow<To>(static_cast<std::int64_t>(value));
      }
      std::memcpy(to, &converted, sizeof(To));
      to += sizeof(To);
    }
  });
}

/// Elements of a type of ours: only their bytes are put in order.
void reorder(const StoredTensor& stored, std::byte* to) {
  switch (size_of(stored.type)) {
    case 1: return copy_elements<std::uint8_t, std::uint8_t>(stored, to);
    case 2: return copy_elements<std::uint16_t, std::uint16_t>(stored, to);
    case 4: return copy_elements<std::uint32_t, std::uint32_t>(stored, to);
    case 8: return copy_elements<std::uint64_t, std::uint64_t>(stored, to);
    default: throw Bug("an element size that no type has");
  }
}

template <class From>
void widen_elements(const StoredTensor& stored, DType dtype, std::byte* to) {
  with_stored_type(dtype, [&]<class To>() { copy_elements<From, To>(stored, to); });
}

void convert(const StoredTensor& stored, DType dtype, std::byte* to) {
  switch (stored.type) {
    case StoredType::u8: return widen_elements<std::uint8_t>(stored, dtype, to);
    case StoredType::i8: return widen_elements<std::int8_t>(stored, dtype, to);
    case StoredType::u16: return widen_elements<std::uint16_t>(stored, dtype, to);
    case StoredType::i16: return widen_elements<std::int16_t>(stored, dtype, to);
    case StoredType::u32: return widen_elements<std::uint32_t>(stored, dtype, to);
    case StoredType::i32:
      if (dtype != DType::i32) return widen_elements<std::int32_t>(stored, dtype, to);
      return reorder(stored, to);
    default: return reorder(stored, to);
  }
}

/// Lets the system take back the memory of file pages that were read and are not needed again. It may be ignored; bytes
/// that are no file's stay as they are.
void give_back(const std::byte* data, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* begin = const_cast<std::byte*>(data);
  std::size_t space = bytes;
  if (std::align(page, page, begin, space) == nullptr) return;
  ::madvise(begin, space / page * page, MADV_PAGEOUT);
}

/// Converts piece by piece, so that the file's pages and the copy are not in memory both at full size.
void convert_in_pieces(const StoredTensor& stored, DType dtype, std::byte* to) {
  constexpr std::int64_t piece = std::int64_t{1} << 22U;
  if (stored.strides != row_major_strides(stored.shape)) return convert(stored, dtype, to);
  const std::int64_t count = element_count(stored.shape);
  for (std::int64_t begin = 0; begin < count; begin += piece) {
    StoredTensor part = stored;
    part.shape = {Extent(std::min(piece, count - begin))};
    part.strides = {1};
    part.data += begin * static_cast<std::int64_t>(size_of(stored.type));
    convert(part, dtype, to + begin * static_cast<std::int64_t>(size_of(dtype)));
    give_back(part.data, static_cast<std::size_t>(part.shape[0].value()) * size_of(stored.type));
  }
}

void check_fits(const StoredTensor& stored, DType dtype) {
  if (fits(stored.type, dtype)) return;
  throw UserError(fmt::format("{} holds {}, which is not read as {}; declare {}, or convert the file", stored.name,
                              type_name(stored), name_of(dtype), name_of(natural_dtype(stored.type))));
}

Strides column_major_strides(const Shape& shape) {
  Strides strides(shape.size(), 1);
  if (element_count(shape) == 0) return strides;
  for (std::size_t d = 1; d < shape.size(); ++d) strides[d] = strides[d - 1] * shape[d - 1].value();
  return strides;
}

}  // namespace

StoredType stored_type(DType dtype) { return static_cast<StoredType>(dtype); }  // the first types, in the same order
std::string_view name_of(StoredType type) { return row_of(type).name; }
std::size_t size_of(StoredType type) { return row_of(type).size; }
DType natural_dtype(StoredType type) { return row_of(type).natural; }

bool fits(StoredType type, DType dtype) {
  const TypeRow& row = row_of(type);
  return row.bits == 0 ? dtype == row.natural : row.bits <= exact_bits(dtype);
}

std::uint64_t stored_bytes(const std::string& file, StoredType type, const Shape& shape) {
  if (shape.size() > max_rank) {
    throw UserError(fmt::format("{}: a file holds at most {} dimensions, not {}", file, max_rank, shape.size()));
  }
  try {
    return static_cast<std::uint64_t>(checked_multiply(element_count(shape), static_cast<std::int64_t>(size_of(type))));
  } catch (const UserError& overflow) {
    throw UserError(fmt::format("{}: impossible shape {}: {}", file, to_string(shape), overflow.what()));
  }
}

StoredTensor stored_tensor(const FileBytes& data, StoredType type, std::endian order, Shape shape,
                           ElementOrder layout) {
  const std::uint64_t needed = stored_bytes(data.name, type, shape);
  if (needed != data.bytes.size()) {
    throw UserError(fmt::format("{}: shape {} of {} takes {} bytes, but {} are there; the file is damaged or cut short",
                                data.name, to_string(shape), name_of(type), needed, data.bytes.size()));
  }
  Strides strides = layout == ElementOrder::row_major ? row_major_strides(shape) : column_major_strides(shape);
  return {data.name, type, order, std::move(shape), std::move(strides), data.bytes.data(), data.owner};
}

StoredTensor stored_complex(const FileBytes& data, StoredType parts, std::endian order, Shape shape,
                            ElementOrder layout) {
  Shape with_parts = shape;
  with_parts.emplace_back(2);
  StoredTensor stored = stored_tensor(data, parts, order, std::move(with_parts), ElementOrder::row_major);
  stored.is_complex = true;
  if (layout == ElementOrder::row_major) return stored;
  stored.strides = column_major_strides(shape);
  for (std::int64_t& stride : stored.strides) stride *= 2;
  stored.strides.push_back(1);
  return stored;
}

std::string_view type_name(const StoredTensor& stored) {
  if (!stored.is_complex) return name_of(stored.type);
  return stored.type == StoredType::f32 ? "c64" : "c128";
}

bool is_read_in_place(const StoredTensor& stored, DType dtype) {
  return stored.type == stored_type(dtype) && stored.order == std::endian::native;
}

Tensor read(const StoredTensor& stored, DType dtype) {
  check_fits(stored, dtype);
  if (is_read_in_place(stored, dtype)) {
    return {dtype, stored.shape, stored.strides, stored.data, stored.owner};
  }
  Tensor result(dtype, stored.shape);
  convert_in_pieces(stored, dtype, result.mutable_data());
  return result;
}

Tensor read(const StoredTensor& stored) { return read(stored, natural_dtype(stored.type)); }

void read_box(const StoredTensor& stored, DType dtype, const std::vector<std::int64_t>& begin, const Shape& bound,
              std::byte* to) {
  check_fits(stored, dtype);
  StoredTensor box = stored;
  box.shape = bound;
  box.data += offset_of(begin, stored.strides) * static_cast<std::int64_t>(size_of(stored.type));
  convert(box, dtype, to);
}

}  // namespace einrel
