#include "kernel/cpu/contraction/pack.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "base/error.h"
#include "tensor/convert.h"

namespace einrel::contraction {
namespace {

/// No tile kernel has more rows or lanes.
constexpr std::int64_t most_lines = 64;

/// Positions that lie side by side in memory: the innermost loops, as far as each continues the one inside it.
std::int64_t stretch(const std::vector<Loop>& loops, std::size_t quantity) {
  std::int64_t length = 1;
  for (auto loop = loops.rbegin(); loop != loops.rend() && loop->steps[quantity] == length; ++loop) {
    length *= loop->extent;
  }
  return length;
}

/// How many of them share all coordinates that are checked.
std::int64_t stretch_inside(const std::vector<Loop>& loops, const Reading& reading) {
  std::int64_t length = stretch(loops, reading.quantity);
  for (const Guard& guard : reading.guards) {
    std::int64_t shared = 1;
    for (auto loop = loops.rbegin(); loop != loops.rend() && loop->steps[guard.quantity] == 0; ++loop) {
      shared = multiply_wrapping(shared, loop->extent);
    }
    length = std::min(length, shared);
  }
  return length;
}

bool can_copy_fast(const Reading& reading, DType type) {
  const bool is_narrow = reading.dtype == DType::bf16 || reading.dtype == DType::f16;
  return reading.aligned && (reading.dtype == type || (type == DType::f32 && is_narrow));
}

template <class T>
DType dtype_of();
template <>
DType dtype_of<float>() {
  return DType::f32;
}
template <>
DType dtype_of<double>() {
  return DType::f64;
}
template <>
DType dtype_of<std::int32_t>() {
  return DType::i32;
}
template <>
DType dtype_of<std::int64_t>() {
  return DType::i64;
}

template <class T, class Stored>
constexpr bool is_fast_pair = std::is_same_v<T, Stored> ||
                              (std::is_same_v<T, float> &&
                               (std::is_same_v<Stored, BFloat16> || std::is_same_v<Stored, Float16>));

/// The pad of an operand as its elements arrive: bf16 and f16 as f32.
template <class T>
T pad_value(const Reading& reading) {
  const bool is_narrow = reading.dtype == DType::bf16 || reading.dtype == DType::f16;
  return with_stored_type(is_narrow ? DType::f32 : reading.dtype,
                          [&]<class Arriving>() { return narrow<T>(widen(narrow<Arriving>(reading.pad))); });
}

template <class T, class Stored>
T element(const std::byte* operand, std::int64_t offset) {
  Stored value;
  std::memcpy(&value, operand + offset * static_cast<std::int64_t>(sizeof(Stored)), sizeof(Stored));
  if constexpr (std::is_same_v<T, Stored>) {
    return value;
  } else {
    return narrow<T>(widen(value));
  }
}

}  // namespace

PackingWay packing_way(const Side& side, const std::vector<Loop>& lines, const std::vector<Loop>& inner, DType type) {
  const Reading& reading = side.reading;
  if (!can_copy_fast(reading, type)) return PackingWay::one_by_one;
  constexpr std::int64_t worthwhile = 4;
  if (stretch(lines, reading.quantity) >= worthwhile) return PackingWay::lines;
  return stretch_inside(inner, reading) >= worthwhile ? PackingWay::inner : PackingWay::one_by_one;
}

double packing_nanoseconds(PackingWay way, DType type) {
  const double size = static_cast<double>(size_of(type));
  switch (way) {
    case PackingWay::lines: return 0.025 * size;
    case PackingWay::inner: return 0.04 * size;
    case PackingWay::one_by_one: break;
  }
  return 0.15 * size;
}

template <class T>
Packer<T>::Packer(const Side& side, std::vector<Loop> lines, std::vector<Loop> inner, DType type)
    : side_(side),
      lines_(std::move(lines)),
      inner_(std::move(inner)),
      way_(packing_way(side, lines_, inner_, type)),
      pad_(pad_value<T>(side.reading)) {
  for (const Guard& guard : side.reading.guards) bounds_.push_back({guard.quantity, guard.extent, 0, {}, {}});
}

template <class T>
void Packer<T>::select_lines(std::int64_t begin, std::int64_t count) {
  if (begin == lines_begin_ && static_cast<std::size_t>(count) == line_offsets_.size()) return;
  lines_begin_ = begin;
  line_offsets_.resize(static_cast<std::size_t>(count));
  fill_offsets(lines_, side_.reading.quantity, begin, count, line_offsets_.data());
  for (Bound& bound : bounds_) {
    bound.of_lines.resize(static_cast<std::size_t>(count));
    fill_offsets(lines_, bound.quantity, begin, count, bound.of_lines.data());
  }
}

template <class T>
void Packer<T>::select_inner(std::int64_t begin, std::int64_t count) {
  if (begin == inner_begin_ && static_cast<std::size_t>(count) == inner_offsets_.size()) return;
  inner_begin_ = begin;
  inner_offsets_.resize(static_cast<std::size_t>(count));
  fill_offsets(inner_, side_.reading.quantity, begin, count, inner_offsets_.data());
  for (Bound& bound : bounds_) {
    bound.of_inner.resize(static_cast<std::size_t>(count));
    fill_offsets(inner_, bound.quantity, begin, count, bound.of_inner.data());
  }
  group_inner();
  if (way_ == PackingWay::inner) {
    pads_.assign(static_cast<std::size_t>(count), pad_);
    zeros_.assign(static_cast<std::size_t>(count), T{0});
    if (side_.reading.dtype != dtype_of<T>()) converted_.resize(static_cast<std::size_t>(count * most_lines));
  }
}

template <class T>
void Packer<T>::select_batch(const std::byte* operand, const std::int64_t* quantities) {
  operand_ = operand;
  base_ = quantities[side_.reading.quantity];
  for (Bound& bound : bounds_) bound.base = quantities[bound.quantity];
}

template <class T>
bool Packer<T>::is_inside(std::int64_t line, std::int64_t position) const {
  return std::all_of(bounds_.begin(), bounds_.end(), [&](const Bound& bound) {
    const std::int64_t coordinate = bound.base + bound.of_lines[static_cast<std::size_t>(line)] +
                                    bound.of_inner[static_cast<std::size_t>(position)];
    return coordinate >= 0 && coordinate < bound.extent;
  });
}

template <class T>
bool Packer<T>::same_bounds(std::int64_t position, std::int64_t other) const {
  return std::all_of(bounds_.begin(), bounds_.end(), [&](const Bound& bound) {
    return bound.of_inner[static_cast<std::size_t>(position)] == bound.of_inner[static_cast<std::size_t>(other)];
  });
}

/// Copying side by side, groups are of all positions with the same coordinates; transposing, of neighbours in memory.
template <class T>
void Packer<T>::group_inner() {
  order_.resize(inner_offsets_.size());
  std::iota(order_.begin(), order_.end(), 0);
  if (way_ == PackingWay::lines && !bounds_.empty()) {
    std::stable_sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) {
      for (const Bound& bound : bounds_) {
        const std::int64_t of_a = bound.of_inner[static_cast<std::size_t>(a)];
        const std::int64_t of_b = bound.of_inner[static_cast<std::size_t>(b)];
        if (of_a != of_b) return of_a < of_b;
      }
      return false;
    });
  }
  groups_.clear();
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const bool goes_on = i > 0 && same_bounds(order_[i - 1], order_[i]) &&
                         (way_ != PackingWay::inner || inner_offsets_[i] == inner_offsets_[i - 1] + 1);
    if (!goes_on) groups_.push_back({i, i});
    groups_.back().end = i + 1;
  }
}

template <class T>
void Packer<T>::fill(const Group& group, std::int64_t first, std::int64_t end, std::int64_t width, T value,
                     T* to) const {
  for (std::size_t i = group.begin; i < group.end; ++i) {
    T* const row = to + order_[i] * width;
    for (std::int64_t l = first; l < end; ++l) row[l] = value;
  }
}

template <class T>
template <class Stored>
void Packer<T>::pack_lines(std::int64_t first, std::int64_t count, std::int64_t width, T* to) const {
  const Stored* const source = reinterpret_cast<const Stored*>(operand_) + base_;
  const std::int64_t* const offsets = line_offsets_.data() + first;
  for (const Group& group : groups_) {
    fill(group, count, width, width, T{0}, to);
    LineCopy<T, Stored> copy{nullptr,
                             inner_offsets_.data(),
                             order_.data() + group.begin,
                             static_cast<std::int64_t>(group.end - group.begin),
                             0,
                             nullptr,
                             width};
    for (std::int64_t l = 0; l < count;) {
      const bool inside = is_inside(first + l, order_[group.begin]);
      std::int64_t end = l + 1;
      while (end < count && is_inside(first + end, order_[group.begin]) == inside &&
             (!inside || offsets[end] == offsets[end - 1] + 1)) {
        ++end;
      }
      if (inside) {
        copy.source = source + offsets[l];
        copy.lanes = end - l;
        copy.to = to + l;
        copy_lines(copy);
      } else {
        fill(group, l, end, width, pad_, to);
      }
      l = end;
    }
  }
}

template <class T>
template <class Stored>
void Packer<T>::pack_inner(std::int64_t first, std::int64_t count, std::int64_t width, T* to) {
  std::array<const T*, most_lines> lines{};
  const Stored* const source = reinterpret_cast<const Stored*>(operand_) + base_;
  for (const Group& group : groups_) {
    const auto begin = static_cast<std::int64_t>(group.begin);
    const auto length = static_cast<std::int64_t>(group.end - group.begin);
    for (std::int64_t l = 0; l < width; ++l) {
      const T*& line = lines[static_cast<std::size_t>(l)];
      if (l >= count) {
        line = zeros_.data();
      } else if (!is_inside(first + l, begin)) {
        line = pads_.data();
      } else {
        const Stored* const from =
            source + line_offsets_[static_cast<std::size_t>(first + l)] + inner_offsets_[group.begin];
        if constexpr (std::is_same_v<T, Stored>) {
          line = from;
        } else {
          T* const values = converted_.data() + l * length;
          convert_line(from, length, values);
          line = values;
        }
      }
    }
    transpose_lines(lines.data(), width, length, to + begin * width);
  }
}

template <class T>
template <class Stored>
void Packer<T>::pack_one_by_one(std::int64_t first, std::int64_t count, std::int64_t width, T* to) const {
  const auto positions = static_cast<std::int64_t>(inner_offsets_.size());
  const auto copy = [&](std::int64_t line, std::int64_t position) {
    T& target = to[position * width + line];
    const std::int64_t offset = add_wrapping(add_wrapping(base_, line_offsets_[static_cast<std::size_t>(first + line)]),
                                             inner_offsets_[static_cast<std::size_t>(position)]);
    target = is_inside(first + line, position) ? element<T, Stored>(operand_, offset) : pad_;
  };
  const auto distance = [&](const std::vector<Loop>& loops) {
    return loops.empty() ? 0.0 : std::abs(static_cast<double>(loops.back().steps[side_.reading.quantity]));
  };
  if (distance(lines_) <= distance(inner_)) {
    for (std::int64_t p = 0; p < positions; ++p) {
      for (std::int64_t l = 0; l < count; ++l) copy(l, p);
    }
  } else {
    for (std::int64_t l = 0; l < count; ++l) {
      for (std::int64_t p = 0; p < positions; ++p) copy(l, p);
    }
  }
  for (std::int64_t p = 0; p < positions; ++p) std::fill(to + p * width + count, to + (p + 1) * width, T{0});
}

template <class T>
void Packer<T>::pack(std::int64_t first, std::int64_t count, std::int64_t width, T* to) {
  invariant(width <= most_lines, "a panel is wider than any tile kernel");
  with_stored_type(side_.reading.dtype, [&]<class Stored>() {
    if constexpr (is_fast_pair<T, Stored>) {
      if (way_ == PackingWay::lines) return pack_lines<Stored>(first, count, width, to);
      if (way_ == PackingWay::inner) return pack_inner<Stored>(first, count, width, to);
    }
    pack_one_by_one<Stored>(first, count, width, to);
  });
  if (side_.factor != 1) {
    const auto size = width * static_cast<std::int64_t>(inner_offsets_.size());
    for (std::int64_t i = 0; i < size; ++i) to[i] *= static_cast<T>(side_.factor);
  }
}

template class Packer<float>;
template class Packer<double>;
template class Packer<std::int32_t>;
template class Packer<std::int64_t>;

}  // namespace einrel::contraction
