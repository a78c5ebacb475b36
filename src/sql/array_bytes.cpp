#include "sql/array_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace einrel::sql {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 4> magic{'E', 'R', 'A', '1'};
constexpr std::size_t header_bytes = 8;
constexpr std::size_t dtype_at = 4;
constexpr std::size_t rank_at = 5;

[[noreturn]] void refuse(const std::string& why) { throw UserError("these bytes are no array of Einrel: " + why); }

}  // namespace

std::vector<std::byte> array_bytes(const Tensor& tensor) {
  const Tensor elements = tensor.row_major();
  const std::size_t begin = header_bytes + elements.rank() * sizeof(std::int64_t);
  const auto size = static_cast<std::size_t>(elements.byte_count());
  if (elements.rank() > 255) throw UserError(fmt::format("an array of {} dimensions is too many", elements.rank()));
  std::vector<std::byte> bytes(begin + size);
  std::memcpy(bytes.data(), magic.data(), magic.size());
  bytes[dtype_at] = static_cast<std::byte>(elements.dtype());
  bytes[rank_at] = static_cast<std::byte>(elements.rank());
  for (std::size_t d = 0; d < elements.rank(); ++d) {
    const std::int64_t extent = elements.shape()[d].value();
    std::memcpy(bytes.data() + header_bytes + d * sizeof(extent), &extent, sizeof(extent));
  }
  if (size != 0) std::memcpy(bytes.data() + begin, elements.data(), size);
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
