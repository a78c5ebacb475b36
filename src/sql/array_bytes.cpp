#include "sql/array_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace einrel::sql {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 4> magic{'E', 'R', 'A', '1'};
constexpr std::size_t header_bytes = 8;
constexpr std::size_t dtype_at = 4;
constexpr std::size_t rank_at = 5;
constexpr std::size_t most_rank = 255;

[[noreturn]] void refuse(const std::string& why) { throw UserError("these bytes are no array of Einrel: " + why); }

}  // namespace

void check_chunk_bytes(DType dtype, const Shape& shape) {
  const std::int64_t bytes = checked_multiply(element_count(shape), static_cast<std::int64_t>(size_of(dtype)));
  if (bytes > most_chunk_bytes)
    throw UserError(
        fmt::format("an array of {} {} takes {}, but a value in a database has at most 1 GB; choose "
                    "smaller chunks with --formats",
                    name_of(dtype), to_string(shape), bytes_text(bytes)));
}

std::size_t array_size(const Tensor& tensor) {
  if (tensor.rank() > most_rank) throw UserError(fmt::format("an array of {} dimensions is too many", tensor.rank()));
  return header_bytes + tensor.rank() * sizeof(std::int64_t) + static_cast<std::size_t>(tensor.byte_count());
}

void write_array(const Tensor& tensor, std::byte* to) {
  std::memcpy(to, magic.data(), magic.size());
  to[dtype_at] = static_cast<std::byte>(tensor.dtype());
  to[rank_at] = static_cast<std::byte>(tensor.rank());
  to[rank_at + 1] = to[rank_at + 2] = std::byte{0};
  to += header_bytes;
  for (const Extent each : tensor.shape()) {
    const std::int64_t extent = each.value();
    std::memcpy(to, &extent, sizeof(extent));
    to += sizeof(extent);
  }
  if (tensor.byte_count() == 0) return;
  const bool has_rows = tensor.rank() == 0 || tensor.strides().back() == 1;  // which are copied whole
  const Tensor elements = has_rows ? tensor : tensor.row_major();
  copy_elements(elements.dtype(), elements.shape(), {elements.data(), elements.strides()}, to,
                row_major_strides(elements.shape()));
}

std::vector<std::byte> array_bytes(const Tensor& tensor) {
  std::vector<std::byte> bytes(array_size(tensor));
  write_array(tensor, bytes.data());
  return bytes;
}

Tensor array_in(std::span<const std::byte> bytes) {
  if (bytes.size() < header_bytes || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    refuse("they do not begin as one does");
  const auto dtype = static_cast<std::size_t>(bytes[dtype_at]);
  if (dtype >= all_dtypes.size() || bytes[6] != std::byte{0} || bytes[7] != std::byte{0})
    refuse("their type is unknown");
  const auto rank = static_cast<std::size_t>(bytes[rank_at]);
  const std::size_t begin = header_bytes + rank * sizeof(std::int64_t);
  if (bytes.size() < begin) refuse("they end before their extents do");
  Shape shape;
  for (std::size_t d = 0; d < rank; ++d) {
    std::int64_t extent = 0;
    std::memcpy(&extent, bytes.data() + header_bytes + d * sizeof(extent), sizeof(extent));
    if (extent < 0) refuse(fmt::format("dimension {} has extent {}", d, extent));
    shape.emplace_back(extent);
  }
  const std::int64_t size =
      checked_multiply(element_count(shape), static_cast<std::int64_t>(size_of(all_dtypes[dtype])));
  if (static_cast<std::uint64_t>(size) != bytes.size() - begin)
    refuse(
        fmt::format("{} takes {} bytes of elements, but there are {}", to_string(shape), size, bytes.size() - begin));
  Strides strides(rank, 0);  // of no elements whatever: their extents may be too large to multiply
  if (size != 0) strides = row_major_strides(shape);
  return Tensor(all_dtypes[dtype], std::move(shape), std::move(strides), bytes.data() + begin, nullptr);
}

}  // namespace einrel::sql
