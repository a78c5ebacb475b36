// The loop of streaming.h. Included by exact_loops.cpp once for each instruction set.

#include <algorithm>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernel/elementwise/streaming.h"
#include "machine/processor.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  const hn::ScalableTag<std::uint8_t> d;
  constexpr std::size_t vector = hn::MaxLanes(d);
  constexpr std::size_t line = nominal_processor.line_bytes;
  const std::size_t before = std::min((line - reinterpret_cast<std::uintptr_t>(to) % line) % line, bytes);
  std::memcpy(to, from, before);
  std::size_t at = before;
  for (; at + line <= bytes; at += line) {
    for (std::size_t v = 0; v < line; v += vector) {
      hn::Stream(hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(from + at + v)), d,
                 reinterpret_cast<std::uint8_t*>(to + at + v));
    }
  }
  std::memcpy(to + at, from + at, bytes - at);
}

}  // namespace
}  // namespace einrel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
