#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/processor.h"

namespace einrel {

/// A result of this size and more, and of twice as much with what it is computed from, stays in no cache: it is written
/// around them, which spares reading what is overwritten.
inline constexpr double least_streamed_bytes = nominal_processor.third_cache;

/// memcpy around the caches. finish_streaming() before another thread may read.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes);
void finish_streaming();

}  // namespace einrel
