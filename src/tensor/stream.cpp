#include "tensor/stream.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "tensor/bytes.h"
#include "tensor/rows.h"

namespace einrel {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20U;

/// `Bits` is an unsigned integer of the element's size: only bytes are moved here.
template <class Bits>
void gather(const Tensor& tensor, std::endian order, const ByteSink& sink) {
  std::vector<Bits> piece;
  piece.reserve(std::min(piece_bytes / sizeof(Bits), static_cast<std::size_t>(tensor.count())));
  for_each_row(tensor.shape(), tensor.strides(), [&](std::int64_t offset, std::int64_t count, std::int64_t stride) {
    for (std::int64_t i = 0; i < count; ++i) {
      const Bits value = tensor.load<Bits>(offset + i * stride);
      piece.push_back(order == std::endian::native ? value : byte_swapped(value));
      if (piece.size() == piece.capacity()) {
        sink(std::as_bytes(std::span(piece)));
        piece.clear();
      }
    }
  });
  if (!piece.empty()) sink(std::as_bytes(std::span(piece)));
}

}  // namespace

void stream_elements(const Tensor& tensor, std::endian order, const ByteSink& sink) {
  const std::size_t size = size_of(tensor.dtype());
  if (tensor.is_row_major() && (size == 1 || order == std::endian::native)) {
    std::span<const std::byte> rest(tensor.data(), static_cast<std::size_t>(tensor.byte_count()));
    while (!rest.empty()) {
      const auto piece = rest.first(std::min(rest.size(), piece_bytes));
      sink(piece);
      rest = rest.subspan(piece.size());
    }
    return;
  }
  switch (size) {
    case 1: return gather<std::uint8_t>(tensor, order, sink);
    case 2: return gather<std::uint16_t>(tensor, order, sink);
    case 4: return gather<std::uint32_t>(tensor, order, sink);
    case 8: return gather<std::uint64_t>(tensor, order, sink);
    default: throw Bug("an element size that no dtype has");
  }
}

}  // namespace einrel
