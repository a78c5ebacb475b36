#include "sql/functions/array_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "tra/formats.h"

namespace einrel::sql {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 4> magic{'E', 'R', 'A', '1'};
constexpr std::size_t header_bytes = array_head_bytes(0);
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

ArrayHead head_in(std::span<const std::byte> begin, std::uint64_t size) {
  if (begin.size() < header_bytes || std::memcmp(begin.data(), magic.data(), magic.size()) != 0)
    refuse("they do not begin as one does");
  const auto dtype = static_cast<std::size_t>(begin[dtype_at]);
  if (dtype >= all_dtypes.size() || begin[6] != std::byte{0} || begin[7] != std::byte{0})
    refuse("their type is unknown");
  const auto rank = static_cast<std::size_t>(begin[rank_at]);
  const std::size_t head = array_head_bytes(rank);
  if (begin.size() < head || size < head) refuse("they end before their extents do");
  ArrayHead found{all_dtypes[dtype], {}};
  for (std::size_t d = 0; d < rank; ++d) {
    std::int64_t extent = 0;
    std::memcpy(&extent, begin.data() + array_head_bytes(d), sizeof(extent));
    if (extent < 0) refuse(fmt::format("dimension {} has extent {}", d, extent));
    found.shape.emplace_back(extent);
  }
  const std::int64_t elements =
      checked_multiply(element_count(found.shape), static_cast<std::int64_t>(size_of(found.dtype)));
  if (static_cast<std::uint64_t>(elements) != size - head)
    refuse(
        fmt::format("{} takes {} bytes of elements, but there are {}", to_string(found.shape), elements, size - head));
  return found;
}

Tensor array_in(std::span<const std::byte> bytes) {
  ArrayHead head = head_in(bytes, bytes.size());
  const std::size_t rank = head.shape.size();
  Strides strides(rank, 0);  // of no elements whatever: their extents may be too large to multiply
  if (element_count(head.shape) != 0) strides = row_major_strides(head.shape);
  return Tensor(head.dtype, std::move(head.shape), std::move(strides), bytes.data() + array_head_bytes(rank), nullptr);
}

}  // namespace einrel::sql
