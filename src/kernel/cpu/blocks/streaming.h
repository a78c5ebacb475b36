#pragma once

#include <cstddef>
#include <cstdint>

namespace einrel {

/// A result of this size and more stays in no cache: it is written around them, which spares reading what is
/// overwritten.
inline constexpr std::int64_t least_streamed_bytes = std::int64_t{16} << 20;

/// memcpy around the caches. finish_streaming() before another thread may read.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes);
void finish_streaming();

}  // namespace einrel
