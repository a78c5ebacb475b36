#include "kernel/elementwise/reading.h"

#include <algorithm>
#include <array>

#include "kernel/elementwise/block_ops.h"
#include "tensor/convert.h"

namespace einrel {
namespace {

/// A half-open range of the lanes of one run.
struct LaneRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The i in [0, count) with 0 <= start + step * i < extent.
LaneRange inside(std::int64_t start, std::int64_t step, std::int64_t extent, std::int64_t count) {
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

/// The lanes of a row where all guards hold.
LaneRange valid_lanes(const Reading& reading, const Lanes& lanes, std::size_t patch, std::size_t row,
                      const std::int64_t* outer) {
  const auto count = static_cast<std::int64_t>(lanes.columns());
  LaneRange valid{0, count};
  for (const Guard& guard : reading.guards) {
    const std::size_t q = guard.quantity;
    const std::int64_t start = lanes.at(patch, q) + static_cast<std::int64_t>(row) * lanes.row_step(q) + outer[q];
    const LaneRange range = inside(start, lanes.step(q), guard.extent, count);
    valid.begin = std::max(valid.begin, range.begin);
    valid.end = std::min(valid.end, range.end);
  }
  return valid.begin < valid.end ? valid : LaneRange{0, 0};
}

/// The pad as an element of the operand's type.
template <class T>
T pad_value(const Reading& reading) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(reading.pad);
  } else if constexpr (std::is_same_v<T, Truth>) {
    return static_cast<Truth>(reading.pad != 0);
  } else {
    return reading.dtype == DType::i32 ? narrow<std::int32_t>(reading.pad) : narrow<std::int64_t>(reading.pad);
  }
}

/// Spans that are loaded together.
template <class T>
class Spans {
 public:
  Spans(const Reading& reading, const std::byte* data, std::int64_t step, T* values)
      : reading_(reading), data_(data), step_(step), values_(values) {}

  void add(ElementSpan span) {
    spans_[count_++] = span;
    if (count_ == spans_.size()) load();
  }
  void load() {
    load_block(reading_.dtype, data_, spans_.data(), count_, step_, values_);
    count_ = 0;
  }

 private:
  const Reading& reading_;
  const std::byte* data_;
  std::int64_t step_;
  T* values_;
  std::array<ElementSpan, 32> spans_;
  std::size_t count_ = 0;
};

/// Lanes that lie side by side in the operand from row to row: as one span from the first to the last one inside, and
/// then the pads over what stands there for lanes outside.
template <class T>
void read_guarded_span(const Reading& reading, const std::byte* data, const Lanes& lanes, const std::int64_t* outer,
                       T* values) {
  const auto columns = static_cast<std::int64_t>(lanes.columns());
  const auto rows = static_cast<std::int64_t>(lanes.patches() * lanes.rows());
  const auto valid_of = [&](std::int64_t row) {
    const auto r = static_cast<std::size_t>(row);
    return valid_lanes(reading, lanes, r / lanes.rows(), r % lanes.rows(), outer);
  };
  const auto is_outside = [](LaneRange valid) { return valid.begin == valid.end; };
  std::int64_t first = 0;
  std::int64_t last = rows - 1;
  while (first <= last && is_outside(valid_of(first))) ++first;
  while (last > first && is_outside(valid_of(last))) --last;
  if (first <= last) {
    const std::int64_t begin = first * columns + valid_of(first).begin;
    const std::int64_t end = last * columns + valid_of(last).end;
    const std::int64_t start = add_wrapping(lanes.at(0, reading.quantity), outer[reading.quantity]);
    const ElementSpan span{add_wrapping(start, begin), static_cast<std::size_t>(begin),
                           static_cast<std::size_t>(end - begin)};
    load_block(reading.dtype, data, &span, 1, 1, values);
  }
  const T pad = pad_value<T>(reading);
  for (std::int64_t row = 0; row < rows; ++row, values += columns) {
    const LaneRange valid = valid_of(row);
    std::fill(values, values + valid.begin, pad);
    std::fill(values + valid.end, values + columns, pad);
  }
}

/// Rows of which some lanes may lie outside of the operand.
template <class T>
void read_guarded(const Reading& reading, const std::byte* data, const Lanes& lanes, const std::int64_t* outer,
                  T* values) {
  const std::size_t q = reading.quantity;
  if (lanes.is_even(q) && lanes.step(q) == 1) return read_guarded_span(reading, data, lanes, outer, values);
  Spans<T> spans(reading, data, lanes.step(q), values);
  const T pad = pad_value<T>(reading);
  std::size_t first = 0;
  for (std::size_t p = 0; p < lanes.patches(); ++p) {
    for (std::size_t r = 0; r < lanes.rows(); ++r, first += lanes.columns()) {
      const LaneRange valid = valid_lanes(reading, lanes, p, r, outer);
      std::fill_n(values + first, valid.begin, pad);
      std::fill(values + first + valid.end, values + first + lanes.columns(), pad);
      if (valid.begin == valid.end) continue;
      const std::int64_t row =
          add_wrapping(lanes.at(p, q), multiply_wrapping(static_cast<std::int64_t>(r), lanes.row_step(q)));
      const std::int64_t offset =
          add_wrapping(add_wrapping(row, outer[q]), multiply_wrapping(lanes.step(q), valid.begin));
      spans.add({offset, first + static_cast<std::size_t>(valid.begin),
                 static_cast<std::size_t>(valid.end - valid.begin), 1, 0});
    }
  }
  spans.load();
}

}  // namespace

template <class T>
void read_block(const Reading& reading, const std::byte* data, const Lanes& lanes, const std::int64_t* outer,
                T* values) {
  const std::size_t q = reading.quantity;
  const std::int64_t step = lanes.step(q);
  if (!reading.guards.empty()) return read_guarded(reading, data, lanes, outer, values);
  if (lanes.is_even(q)) {
    const ElementSpan span{lanes.at(0, q) + outer[q], 0, lanes.count(), 1, 0};
    return load_block(reading.dtype, data, &span, 1, step, values);
  }
  const std::size_t lanes_per_patch = lanes.rows() * lanes.columns();
  for (std::size_t p = 0; p < lanes.patches(); ++p) {
    const ElementSpan span{lanes.at(p, q) + outer[q], p * lanes_per_patch, lanes.columns(), lanes.rows(),
                           lanes.row_step(q)};
    load_block(reading.dtype, data, &span, 1, step, values);
  }
}

template void read_block(const Reading&, const std::byte*, const Lanes&, const std::int64_t*, float*);
template void read_block(const Reading&, const std::byte*, const Lanes&, const std::int64_t*, double*);
template void read_block(const Reading&, const std::byte*, const Lanes&, const std::int64_t*, std::int64_t*);
template void read_block(const Reading&, const std::byte*, const Lanes&, const std::int64_t*, Truth*);

namespace {

/// Whether elements of every block can be read one by one from where the first one lies.
bool are_side_by_side(const Reading& reading, const Lanes& lanes) {
  if (!reading.guards.empty() || !reading.aligned || !lanes.is_even(reading.quantity)) return false;
  return lanes.step(reading.quantity) == 1 || lanes.count() == 1;
}

template <class T>
constexpr DType stored_as = DType::f32;
template <>
constexpr DType stored_as<double> = DType::f64;
template <>
constexpr DType stored_as<std::int64_t> = DType::i64;
template <>
constexpr DType stored_as<BFloat16> = DType::bf16;

}  // namespace

bool is_in_place(const Reading& reading, const Lanes& lanes) {
  const bool as_stored = reading.dtype == DType::f32 || reading.dtype == DType::f64 || reading.dtype == DType::i64;
  return as_stored && are_side_by_side(reading, lanes);
}

template <class T>
const T* in_place(const Reading& reading, const std::byte* data, const Lanes& lanes, const std::int64_t* outer) {
  if (reading.dtype != stored_as<T> || !are_side_by_side(reading, lanes)) return nullptr;
  const std::int64_t offset = add_wrapping(lanes.at(0, reading.quantity), outer[reading.quantity]);
  return reinterpret_cast<const T*>(data + offset * static_cast<std::int64_t>(sizeof(T)));
}

template const float* in_place(const Reading&, const std::byte*, const Lanes&, const std::int64_t*);
template const double* in_place(const Reading&, const std::byte*, const Lanes&, const std::int64_t*);
template const std::int64_t* in_place(const Reading&, const std::byte*, const Lanes&, const std::int64_t*);
template const BFloat16* in_place(const Reading&, const std::byte*, const Lanes&, const std::int64_t*);

}  // namespace einrel
