#include "kernel/reading.h"

#include <algorithm>
#include <array>

#include "kernel/block_ops.h"
#include "tensor/convert.h"

namespace einrel {
namespace {

/// A half-open range of the lanes of one run.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The i in [0, count) with 0 <= start + step * i < extent.
Range inside(std::int64_t start, std::int64_t step, std::int64_t extent, std::int64_t count) {
  if (step == 0) return {0, start >= 0 && start < extent ? count : 0};
  if (step < 0) {  // walk the mirrored coordinate
    start = extent - 1 - start;
    step = -step;
  }
  const std::int64_t first = start < 0 ? (-start + step - 1) / step : 0;
  const std::int64_t last = start < extent ? (extent - 1 - start) / step : -1;
  const std::int64_t begin = std::min(first, count);
  return {begin, std::clamp(last + 1, begin, count)};
}

/// The lanes of a run where all guards hold.
Range valid_lanes(const Reading& reading, const Lanes& lanes, std::size_t run, const std::int64_t* outer) {
  const auto count = static_cast<std::int64_t>(lanes.runs()[run].count);
  Range valid{0, count};
  for (const Guard& guard : reading.guards) {
    const std::int64_t start = lanes.at(run, guard.quantity) + outer[guard.quantity];
    const Range range = inside(start, lanes.step(guard.quantity), guard.extent, count);
    valid.begin = std::max(valid.begin, range.begin);
    valid.end = std::min(valid.end, range.end);
  }
  return valid.begin < valid.end ? valid : Range{0, 0};
}

/// The pad as an element of the operand's type.
template <class T>
T pad_value(const Reading& reading) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(reading.pad);
  } else {
    switch (reading.dtype) {
      case DType::i32: return narrow<std::int32_t>(reading.pad);
      case DType::boolean: return static_cast<T>(reading.pad != 0);
      default: return narrow<std::int64_t>(reading.pad);
    }
  }
}

}  // namespace

template <class T>
void read_block(const Reading& reading, const std::byte* data, const Lanes& lanes, const std::int64_t* outer,
                T* values) {
  const std::int64_t step = lanes.step(reading.quantity);
  std::array<ElementSpan, 64> spans;
  std::size_t span_count = 0;
  for (std::size_t r = 0; r < lanes.runs().size(); ++r) {
    const Run run = lanes.runs()[r];
    Range valid{0, static_cast<std::int64_t>(run.count)};
    if (!reading.guards.empty()) {
      valid = valid_lanes(reading, lanes, r, outer);
      std::fill_n(values + run.first, valid.begin, pad_value<T>(reading));
      std::fill(values + run.first + valid.end, values + run.first + run.count, pad_value<T>(reading));
    }
    const std::int64_t offset = add_wrapping(add_wrapping(lanes.at(r, reading.quantity), outer[reading.quantity]),
                                             multiply_wrapping(step, valid.begin));
    if (valid.begin < valid.end) {
      spans[span_count++] = {offset, run.first + static_cast<std::size_t>(valid.begin),
                             static_cast<std::size_t>(valid.end - valid.begin)};
    }
    if (span_count == spans.size() || r + 1 == lanes.runs().size()) {
      load_block(reading.dtype, data, spans.data(), span_count, step, values);
      span_count = 0;
    }
  }
}

template void read_block(const Reading&, const std::byte*, const Lanes&, const std::int64_t*, float*);
template void read_block(const Reading&, const std::byte*, const Lanes&, const std::int64_t*, double*);
template void read_block(const Reading&, const std::byte*, const Lanes&, const std::int64_t*, std::int64_t*);

template <class T>
const T* in_place(const Reading& reading, const std::byte* data, const Lanes& lanes, const std::int64_t* outer) {
  if (lanes.runs().size() != 1 || !reading.guards.empty() || !reading.aligned) return nullptr;
  if (lanes.step(reading.quantity) != 1 && lanes.count() != 1) return nullptr;
  const std::int64_t offset = add_wrapping(lanes.at(0, reading.quantity), outer[reading.quantity]);
  return reinterpret_cast<const T*>(data + offset * static_cast<std::int64_t>(sizeof(T)));
}

template const float* in_place(const Reading&, const std::byte*, const Lanes&, const std::int64_t*);
template const double* in_place(const Reading&, const std::byte*, const Lanes&, const std::int64_t*);
template const std::int64_t* in_place(const Reading&, const std::byte*, const Lanes&, const std::int64_t*);

}  // namespace einrel
