#include "kernel/products/pack.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

#include "base/error.h"
#include "tensor/convert.h"

namespace einrel::contraction {
namespace {

/// No tile kernel has more rows or lanes.
constexpr std::int64_t most_lines = 64;

bool can_copy_fast(const Reading& reading, DType type) {
  return reading.aligned && (reading.dtype == type || (type == DType::f32 && is_narrow(reading.dtype)));
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
T element(const std::byte* operand, std::int64_t offset) {
  Stored value;
  std::memcpy(&value, operand + offset * static_cast<std::int64_t>(sizeof(Stored)), sizeof(Stored));
  if constexpr (std::is_same_v<T, Stored>) {
    return value;
  } else {
    return narrow<T>(widen(value));
  }
}

/// Element p of a line of a panel that begins here.
template <class T>
void put(T value, std::int64_t p, std::int64_t width, T* line) {
  line[p * width] = value;
}
void put(BFloat16 value, std::int64_t p, std::int64_t width, BFloat16Pair* line) {
  BFloat16Pair& slot = line[p / 2 * width];
  const unsigned shift = p % 2 == 0 ? 0 : 16;
  slot = (slot & (0xFFFF0000U >> shift)) | static_cast<BFloat16Pair>(value.bits) << shift;
}

}  // namespace

template <class T>
T pad_value(const Reading& reading) {
  return with_stored_type(is_narrow(reading.dtype) ? DType::f32 : reading.dtype,
                          [&]<class Arriving>() { return narrow<T>(widen(narrow<Arriving>(reading.pad))); });
}
template float pad_value(const Reading&);
template double pad_value(const Reading&);

std::int64_t inner_run(const std::vector<Loop>& inner, std::size_t quantity) {
  constexpr std::int64_t packed_at_once = 256;
  std::int64_t inside = 1;
  for (auto loop = inner.rbegin(); loop != inner.rend(); ++loop) {
    if (loop->steps[quantity] == 1) {
      const std::int64_t whole = inside == 1 ? stretch(inner, quantity) : loop->extent;
      return std::min(whole, std::max<std::int64_t>(packed_at_once / inside, 1));
    }
    if (loop->extent >= packed_at_once) break;
    inside *= loop->extent;
  }
  return 1;
}

PackingWay packing_way(const Side& side, const std::vector<Loop>& lines, const std::vector<Loop>& inner, DType type) {
  const Reading& reading = side.reading;
  if (!can_copy_fast(reading, type)) return PackingWay::converted;
  constexpr std::int64_t worthwhile = 4;
  if (stretch(lines, reading.quantity) >= worthwhile) return PackingWay::lines;
  return inner_run(inner, reading.quantity) >= worthwhile ? PackingWay::inner : PackingWay::gathered;
}

double packing_nanoseconds(PackingWay way, DType type) {
  const double size = static_cast<double>(size_of(type));
  switch (way) {
    case PackingWay::lines: return 0.03 * size;
    case PackingWay::inner: return 0.045 * size;
    case PackingWay::gathered: return 0.12 * size;
    case PackingWay::converted: break;
  }
  return 0.4 * size;
}

template <class T>
Packer<T>::Packer(const Side& side, std::vector<Loop> lines, std::vector<Loop> inner, DType type, bool turned)
    : side_(side),
      lines_(std::move(lines)),
      inner_(std::move(inner)),
      way_(packing_way(side, lines_, inner_, type)),
      turned_(turned),
      pad_(pad_value<Element>(side.reading)) {
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
  order_.resize(inner_offsets_.size());
  std::iota(order_.begin(), order_.end(), 0);
  if (way_ != PackingWay::inner) return group_same_bounds();
  group_neighbours();
  zeros_.assign(static_cast<std::size_t>(count), T{0});
  if constexpr (is_pair<T>) {
    room_.assign(static_cast<std::size_t>(slots() * most_lines), T{0});
  } else if (side_.reading.dtype != dtype_of<T>() || !bounds_.empty()) {
    room_.resize(static_cast<std::size_t>(count * most_lines));
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
  for (const Bound& bound : bounds_) {
    const std::int64_t coordinate = bound.base + bound.of_lines[static_cast<std::size_t>(line)] +
                                    bound.of_inner[static_cast<std::size_t>(position)];
    if (static_cast<std::uint64_t>(coordinate) >= static_cast<std::uint64_t>(bound.extent)) return false;
  }
  return true;
}

template <class T>
void Packer<T>::group_same_bounds() {
  const auto compare = [&](std::int32_t a, std::int32_t b) {
    for (const Bound& bound : bounds_) {
      const std::int64_t of_a = bound.of_inner[static_cast<std::size_t>(a)];
      const std::int64_t of_b = bound.of_inner[static_cast<std::size_t>(b)];
      if (of_a != of_b) return of_a < of_b;
    }
    return false;
  };
  if (!bounds_.empty()) std::stable_sort(order_.begin(), order_.end(), compare);
  groups_.clear();
  for (std::size_t i = 0; i < order_.size(); ++i) {
    if (i == 0 || compare(order_[i - 1], order_[i])) groups_.push_back({i, i, 1, 0});
    groups_.back().end = i + 1;
  }
  find_reaches();
}

/// Whether the coordinates that are checked differ as much from x to y as from y to z.
template <class T>
bool Packer<T>::grow_evenly(std::int64_t x, std::int64_t y, std::int64_t z) const {
  return std::all_of(bounds_.begin(), bounds_.end(), [&](const Bound& bound) {
    const auto at = [&](std::int64_t position) { return bound.of_inner[static_cast<std::size_t>(position)]; };
    return at(y) - at(x) == at(z) - at(y);
  });
}

template <class T>
void Packer<T>::group_neighbours() {
  if (bounds_.empty() && stretch(inner_, side_.reading.quantity) == position_count(inner_)) {
    groups_ = {{0, order_.size(), 1, 0}};
    return;
  }
  const auto offset = [&](std::int32_t position) { return inner_offsets_[static_cast<std::size_t>(position)]; };
  if (!inner_.empty() && inner_.back().steps[side_.reading.quantity] != 1) {
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::int32_t a, std::int32_t b) { return offset(a) < offset(b); });
  }
  groups_.clear();
  for (std::size_t i = 0; i < order_.size(); ++i) {
    if (!groups_.empty() && offset(order_[i]) == offset(order_[i - 1]) + 1) {
      Group& group = groups_.back();
      const std::int64_t step = order_[i] - order_[i - 1];
      const bool second = i == group.begin + 1;
      if (second || (step == group.step && grow_evenly(order_[i - 2], order_[i - 1], order_[i]))) {
        group.step = step;
        group.end = i + 1;
        continue;
      }
    }
    groups_.push_back({i, i + 1, 1, 0});
  }
  find_reaches();
}

/// Coordinates are the same in all of a group, or grow evenly: they are lowest and highest at its ends.
template <class T>
void Packer<T>::find_reaches() {
  reaches_.clear();
  for (Group& group : groups_) {
    group.reach = reaches_.size();
    for (const Bound& bound : bounds_) {
      const std::int64_t first = bound.of_inner[static_cast<std::size_t>(order_[group.begin])];
      const std::int64_t last = bound.of_inner[static_cast<std::size_t>(order_[group.end - 1])];
      reaches_.push_back(std::min(first, last));
      reaches_.push_back(std::max(first, last));
    }
  }
}

/// Bit l is set where line first + l lies outside of the operand somewhere in a group.
template <class T>
std::uint64_t Packer<T>::lines_outside(const Group& group, std::int64_t first, std::int64_t count) const {
  const std::int64_t* reach = reaches_.data() + group.reach;
  std::uint64_t bits = 0;
  for (const Bound& bound : bounds_) {
    bits |= outside(bound.of_lines.data() + first, count, -(bound.base + reach[0]),
                    bound.extent - 1 - (bound.base + reach[1]));
    reach += 2;
  }
  return bits;
}

template <class T>
std::int64_t Packer<T>::slots() const {
  return slots_for<T>(static_cast<std::int64_t>(inner_offsets_.size()));
}

/// Where a line's elements go, at inner position 0.
template <class T>
T* Packer<T>::place(const Lines& lines, std::int64_t line, T* to) const {
  return to + line / lines.width * lines.width * slots() + line % lines.width;
}

/// Both operands have 0 in the half that no inner position goes to: what else lies there might be no number.
template <class T>
void Packer<T>::clear_last_slots(const Lines& lines, T* to) const {
  for (std::int64_t begin = 0; begin < lines.count; begin += lines.width) {
    std::fill_n(place(lines, begin, to) + (slots() - 1) * lines.width, lines.width, T{0});
  }
}

template <class T>
void Packer<T>::fill(const Group& group, const Lines& lines, std::int64_t begin, std::int64_t end, Element value,
                     T* to) const {
  for (std::int64_t l = begin; l < end; ++l) {
    T* const line = place(lines, l, to);
    for (std::size_t i = group.begin; i < group.end; ++i) put(value, order_[i], lines.width, line);
  }
}

/// Lines [begin, end), which lie side by side: all whole panels at once, but few where panels lie whole pages apart and
/// would evict one another from the first-level cache.
template <class T>
template <class Stored>
void Packer<T>::copy(const Group& group, const Lines& lines, std::int64_t begin, std::int64_t end, T* to) const {
  LineCopy<T, Stored> copy;
  copy.offsets = inner_offsets_.data();
  copy.positions = order_.data() + group.begin;
  copy.count = static_cast<std::int64_t>(group.end - group.begin);
  copy.width = lines.width;
  copy.panel = lines.width * slots();
  const bool collide = copy.panel * static_cast<std::int64_t>(sizeof(T)) % nominal_processor.page_bytes == 0;
  const std::int64_t most_panels =
      collide ? nominal_processor.first_cache_ways : std::numeric_limits<std::int64_t>::max();
  const Stored* const source = reinterpret_cast<const Stored*>(operand_) + base_;
  while (begin < end) {
    copy.lanes = std::min(lines.width - begin % lines.width, end - begin);
    copy.panels = copy.lanes == lines.width ? std::min((end - begin) / lines.width, most_panels) : 1;
    copy.source = source + line_offsets_[static_cast<std::size_t>(lines.first + begin)];
    copy.to = place(lines, begin, to);
    copy_lines(copy);
    begin += copy.panels * copy.lanes;
  }
}

template <class T>
template <class Stored>
void Packer<T>::gather(const Group& group, const Lines& lines, std::int64_t begin, std::int64_t end, T* to) const {
  const std::int64_t* const offsets = line_offsets_.data() + lines.first;
  for (std::size_t i = group.begin; i < group.end; ++i) {
    const std::int64_t start = add_wrapping(base_, inner_offsets_[static_cast<std::size_t>(order_[i])]);
    for (std::int64_t l = begin; l < end;) {
      const std::int64_t stop = std::min(l / lines.width * lines.width + lines.width, end);
      T* const line = place(lines, l, to) - l;
      for (; l < stop; ++l) {
        put(element<Element, Stored>(operand_, add_wrapping(start, offsets[l])), order_[i], lines.width, line + l);
      }
    }
  }
}

template <class T>
template <class Stored>
void Packer<T>::pack_lines(const Lines& lines, T* to) const {
  const std::int64_t* const offsets = line_offsets_.data() + lines.first;
  const std::int64_t whole = (lines.count + lines.width - 1) / lines.width * lines.width;
  const bool side_by_side = way_ == PackingWay::lines;
  for (const Group& group : groups_) {
    fill(group, lines, lines.count, whole, Element{}, to);
    std::uint64_t outside = 0;  // of 64 lines
    const auto is_inside = [&](std::int64_t line) {
      constexpr std::int64_t at_once = 64;
      if (line % at_once == 0) {
        outside = lines_outside(group, lines.first + line, std::min(at_once, lines.count - line));
      }
      return (outside >> static_cast<unsigned>(line % at_once) & 1U) == 0;
    };
    bool next_inside = is_inside(0);
    for (std::int64_t l = 0; l < lines.count;) {
      const bool inside = next_inside;
      std::int64_t end = l + 1;
      for (; end < lines.count; ++end) {
        next_inside = is_inside(end);
        if (next_inside != inside || (inside && side_by_side && offsets[end] != offsets[end - 1] + 1)) break;
      }
      if (!inside) {
        fill(group, lines, l, end, pad_, to);
      } else if constexpr (is_fast_pair<T, Stored>) {
        side_by_side ? copy<Stored>(group, lines, l, end, to) : gather<Stored>(group, lines, l, end, to);
      } else {
        gather<Stored>(group, lines, l, end, to);
      }
      l = end;
    }
  }
}

/// The elements of a line at the positions of a group, side by side: where they lie, or copied into `room`.
template <class T>
template <class Stored>
const T* Packer<T>::line_of(const Group& group, std::int64_t line, bool reaches_out, T* room) const {
  const auto count = static_cast<std::int64_t>(group.end - group.begin);
  const std::int64_t begin = add_wrapping(add_wrapping(base_, line_offsets_[static_cast<std::size_t>(line)]),
                                          inner_offsets_[static_cast<std::size_t>(order_[group.begin])]);
  const auto inside = [&](std::int64_t i) {
    return is_inside(line, order_[group.begin + static_cast<std::size_t>(i)]);
  };
  std::int64_t first = 0;
  std::int64_t end = count;
  if (reaches_out) {  // coordinates grow evenly: what is inside is in one piece
    while (first < end && !inside(first)) room[first++] = pad_;
    while (end > first && !inside(end - 1)) room[--end] = pad_;
  }
  const Stored* const from = reinterpret_cast<const Stored*>(operand_) + begin;
  if constexpr (std::is_same_v<T, Stored>) {
    if (!reaches_out) return from;
    std::copy(from + first, from + end, room + first);
  } else {
    convert_line(from + first, end - first, room + first);
  }
  return room;
}

template <class T>
const T* Packer<T>::line_in_place(std::int64_t line) const {
  const bool in_one_piece = way_ == PackingWay::inner && groups_.size() == 1 && bounds_.empty() && room_.empty();
  if (!in_one_piece) return nullptr;
  return reinterpret_cast<const T*>(operand_) +
         add_wrapping(add_wrapping(base_, line_offsets_[static_cast<std::size_t>(line)]), inner_offsets_[0]);
}

/// How far behind the lines of a panel those of the next one lie; 0 if there is none, or lines are not read where they
/// lie in the operand.
template <class T>
std::int64_t Packer<T>::lines_ahead(const Lines& lines, std::int64_t begin) const {
  if (begin + lines.width >= lines.count || !room_.empty()) return 0;
  const auto line = static_cast<std::size_t>(lines.first + begin);
  return line_offsets_[line + static_cast<std::size_t>(lines.width)] - line_offsets_[line];
}

template <class T>
template <class Stored>
void Packer<T>::pack_inner(const Lines& lines, T* to) {
  std::array<const T*, most_lines> panel{};
  for (const Group& group : groups_) {
    const auto count = static_cast<std::int64_t>(group.end - group.begin);
    for (std::int64_t begin = 0; begin < lines.count; begin += lines.width) {
      const std::int64_t existing = std::min(lines.width, lines.count - begin);
      std::uint64_t outside = lines_outside(group, lines.first + begin, existing);
      for (std::int64_t l = 0; l < lines.width; ++l, outside >>= 1U) {
        T* const room = room_.empty() ? nullptr : room_.data() + l * count;
        panel[static_cast<std::size_t>(l)] =
            l < existing ? line_of<Stored>(group, lines.first + begin + l, (outside & 1U) != 0, room) : zeros_.data();
      }
      transpose_lines(panel.data(), lines.width, count, place(lines, begin, to) + order_[group.begin] * lines.width,
                      group.step * lines.width, lines_ahead(lines, begin));
    }
  }
}

/// The elements of a line at the positions of a group, as pairs of which `room` has those of all positions.
template <class T>
template <class Stored>
void Packer<T>::pair_line(const Group& group, std::int64_t line, bool reaches_out, T* room) const {
  const std::int64_t begin = add_wrapping(add_wrapping(base_, line_offsets_[static_cast<std::size_t>(line)]),
                                          inner_offsets_[static_cast<std::size_t>(order_[group.begin])]);
  constexpr std::int64_t size = sizeof(Stored);
  const auto to = [&](std::int64_t position) { return reinterpret_cast<std::byte*>(room) + position * size; };
  if (!reaches_out && group.step == 1) {
    std::memcpy(to(order_[group.begin]), operand_ + begin * size, (group.end - group.begin) * sizeof(Stored));
    return;
  }
  for (std::size_t i = group.begin; i < group.end; ++i) {
    const std::int64_t offset = add_wrapping(begin, static_cast<std::int64_t>(i - group.begin));
    const Element value =
        !reaches_out || is_inside(line, order_[i]) ? element<Element, Stored>(operand_, offset) : pad_;
    std::memcpy(to(order_[i]), &value, sizeof value);
  }
}

/// The pairs of a line that lies in memory as panels hold it; else null.
template <class T>
template <class Stored>
const T* Packer<T>::pairs_in_place(std::int64_t line) const {
  if (groups_.size() != 1 || groups_[0].step != 1 || inner_offsets_.size() % 2 != 0) return nullptr;
  const std::int64_t begin =
      add_wrapping(add_wrapping(base_, line_offsets_[static_cast<std::size_t>(line)]), inner_offsets_[0]);
  const std::byte* const from = operand_ + begin * static_cast<std::int64_t>(sizeof(Stored));
  return reinterpret_cast<std::uintptr_t>(from) % sizeof(T) == 0 ? reinterpret_cast<const T*>(from) : nullptr;
}

template <class T>
template <class Stored>
void Packer<T>::pack_inner_pairs(const Lines& lines, T* to) {
  std::array<const T*, most_lines> panel{};
  for (std::int64_t begin = 0; begin < lines.count; begin += lines.width) {
    const std::int64_t existing = std::min(lines.width, lines.count - begin);
    for (const Group& group : groups_) {
      std::uint64_t outside = lines_outside(group, lines.first + begin, existing);
      for (std::int64_t l = 0; l < existing; ++l, outside >>= 1U) {
        const std::int64_t line = lines.first + begin + l;
        const bool reaches_out = (outside & 1U) != 0;
        const T*& pairs = panel[static_cast<std::size_t>(l)];
        pairs = reaches_out ? nullptr : pairs_in_place<Stored>(line);
        if (pairs != nullptr) continue;
        T* const room = room_.data() + l * slots();
        pair_line<Stored>(group, line, reaches_out, room);
        pairs = room;
      }
    }
    std::fill(panel.begin() + existing, panel.begin() + lines.width, zeros_.data());
    if (turned_) {
      put_turned(panel.data(), lines.width, place(lines, begin, to));
    } else {
      transpose_lines(panel.data(), lines.width, slots(), place(lines, begin, to), lines.width);
    }
  }
}

/// A panel from its lines.
template <class T>
void Packer<T>::put_turned(const T* const* panel, std::int64_t width, T* to) const {
  const std::int64_t whole = slots() / block_side * block_side;
  for (std::int64_t s = 0; s < whole; s += block_side) {
    for (std::int64_t l = 0; l < width; ++l, to += block_side) std::memcpy(to, panel[l] + s, block_side * sizeof(T));
  }
  for (std::int64_t s = whole; s < slots(); ++s) {
    for (std::int64_t l = 0; l < width; ++l) *to++ = panel[l][s];
  }
}

/// Panels whose slots hold their lines side by side.
template <class T>
void Packer<T>::turn(const Lines& lines, T* to) const {
  std::array<T, most_lines * block_side> before;
  std::array<const T*, block_side> slot{};
  for (std::int64_t begin = 0; begin < lines.count; begin += lines.width) {
    T* block = place(lines, begin, to);
    for (std::int64_t s = 0; s + block_side <= slots(); s += block_side, block += block_side * lines.width) {
      std::copy_n(block, block_side * lines.width, before.data());
      for (std::int64_t l = 0; l < lines.width; l += block_side) {
        for (std::size_t i = 0; i < slot.size(); ++i) {
          slot[i] = before.data() + static_cast<std::int64_t>(i) * lines.width + l;
        }
        transpose_lines(slot.data(), block_side, block_side, block + l * block_side, block_side);
      }
    }
  }
}

template <class T>
void Packer<T>::pack(std::int64_t first, std::int64_t count, std::int64_t width, T* to) {
  invariant(width <= most_lines, "a panel is wider than any tile kernel");
  const Lines lines{first, count, width};
  if constexpr (is_pair<T>) {
    if (way_ == PackingWay::inner) return pack_inner_pairs<BFloat16>(lines, to);
    if (inner_offsets_.size() % 2 != 0) clear_last_slots(lines, to);
    pack_lines<BFloat16>(lines, to);
    if (turned_) turn(lines, to);
  } else {
    with_stored_type(side_.reading.dtype, [&]<class Stored>() {
      if constexpr (is_fast_pair<T, Stored>) {
        if (way_ == PackingWay::inner) return pack_inner<Stored>(lines, to);
      }
      pack_lines<Stored>(lines, to);
    });
    if (side_.factor == 1) return;
    const std::int64_t size = (count + width - 1) / width * width * slots();
    for (std::int64_t i = 0; i < size; ++i) to[i] *= static_cast<T>(side_.factor);
  }
}

template class Packer<float>;
template class Packer<double>;
template class Packer<std::int32_t>;
template class Packer<std::int64_t>;
template class Packer<BFloat16Pair>;

}  // namespace einrel::contraction
