#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernel/products/pack_ops.h"
#include "kernel/products/product.h"

namespace einrel::contraction {

/// How an operand is copied into panels.
enum class PackingWay : std::uint8_t {
  lines,     ///< neighbouring lines lie side by side in memory: copied together
  inner,     ///< neighbours along an inner loop do: blocks are transposed
  gathered,  ///< neither
  converted  ///< one by one, from a type that is rare here, or misaligned
};
PackingWay packing_way(const Side& side, const std::vector<Loop>& lines, const std::vector<Loop>& inner, DType type);

/// How many neighbours in memory can be packed at a time along inner positions of which some hundred are packed at
/// once.
std::int64_t inner_run(const std::vector<Loop>& inner, std::size_t quantity);

/// The pad of an operand as its elements arrive: bf16 and f16 as f32.
template <class T>
T pad_value(const Reading& reading);

/// Nanoseconds per element, roughly, of an operand that is in the second or third cache: of these loops, measured where
/// a processor is about nominal_processor.
double packing_nanoseconds(PackingWay way, DType type);

/// Copies an operand into panels that tiles are computed from: some of its lines (rows or columns) at some inner
/// positions, converted to T, with the pad where guards fail. T is the type that products are computed in, or a pair.
template <class T>
class Packer {
  using Element = std::conditional_t<is_pair<T>, BFloat16, T>;

 public:
  /// `turned`, of pairs: in whole blocks of 16 slots those of a line lie side by side (TileKernels::turned).
  Packer(const Side& side, std::vector<Loop> lines, std::vector<Loop> inner, DType type, bool turned = false);

  /// Flattened positions that the next panels are taken from.
  void select_lines(std::int64_t begin, std::int64_t count);
  void select_inner(std::int64_t begin, std::int64_t count);
  /// Where the operand lies, and every quantity at the position of the batch.
  void select_batch(const std::byte* operand, const std::int64_t* quantities);

  /// Packs `count` of the selected lines from `first` on, at all selected inner positions, into panels of `width` lines
  /// that follow one another: element p of line first + l of the first panel goes to to[p * width + l], of pairs
  /// into to[p / 2 * width + l]. Lines that the last panel lacks are 0.
  void pack(std::int64_t first, std::int64_t count, std::int64_t width, T* to);

  /// Whether packing a panel takes about as long alone as together with its neighbours.
  bool packs_line_by_line() const { return way_ == PackingWay::inner; }

  /// Where a selected line lies, if what is packed of it is in one piece and stored as T; else null.
  const T* line_in_place(std::int64_t line) const;

 private:
  /// A coordinate of a padded operand.
  struct Bound {
    std::size_t quantity = 0;
    std::int64_t extent = 0;
    std::int64_t base = 0;
    std::vector<std::int64_t> of_lines;
    std::vector<std::int64_t> of_inner;
  };
  /// Inner positions that are packed together, order_[begin, end): for transposing, neighbours in memory, each `step`
  /// positions after the one before, whose coordinates grow evenly; else those whose coordinates are the same.
  struct Group {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::int64_t step = 1;
    std::size_t reach = 0;  ///< where its lowest and highest coordinates begin in reaches_
  };
  struct Lines {
    std::int64_t first = 0;  ///< of the selected ones
    std::int64_t count = 0;
    std::int64_t width = 0;  ///< of a panel
  };

  bool is_inside(std::int64_t line, std::int64_t position) const;
  std::uint64_t lines_outside(const Group& group, std::int64_t first, std::int64_t count) const;
  bool grow_evenly(std::int64_t x, std::int64_t y, std::int64_t z) const;
  void group_same_bounds();
  void group_neighbours();
  void find_reaches();
  std::int64_t slots() const;
  T* place(const Lines& lines, std::int64_t line, T* to) const;
  void clear_last_slots(const Lines& lines, T* to) const;
  void fill(const Group& group, const Lines& lines, std::int64_t begin, std::int64_t end, Element value, T* to) const;
  template <class Stored>
  void copy(const Group& group, const Lines& lines, std::int64_t begin, std::int64_t end, T* to) const;
  template <class Stored>
  void gather(const Group& group, const Lines& lines, std::int64_t begin, std::int64_t end, T* to) const;
  template <class Stored>
  void pack_lines(const Lines& lines, T* to) const;
  template <class Stored>
  const T* line_of(const Group& group, std::int64_t line, bool reaches_out, T* room) const;
  std::int64_t lines_ahead(const Lines& lines, std::int64_t begin) const;
  template <class Stored>
  void pack_inner(const Lines& lines, T* to);
  template <class Stored>
  void pair_line(const Group& group, std::int64_t line, bool reaches_out, T* room) const;
  template <class Stored>
  const T* pairs_in_place(std::int64_t line) const;
  template <class Stored>
  void pack_inner_pairs(const Lines& lines, T* to);
  void put_turned(const T* const* panel, std::int64_t width, T* to) const;
  void turn(const Lines& lines, T* to) const;

  Side side_;
  std::vector<Loop> lines_;
  std::vector<Loop> inner_;
  PackingWay way_;
  bool turned_;
  Element pad_;
  std::int64_t lines_begin_ = 0;
  std::int64_t inner_begin_ = 0;
  std::vector<std::int64_t> line_offsets_;
  std::vector<std::int64_t> inner_offsets_;
  std::vector<Bound> bounds_;
  std::vector<std::int32_t> order_;  ///< inner positions
  std::vector<Group> groups_;
  std::vector<std::int64_t> reaches_;
  std::vector<T> zeros_;  ///< a line that does not exist
  std::vector<T> room_;   ///< lines that are converted or paired, or reach beyond the operand
  const std::byte* operand_ = nullptr;
  std::int64_t base_ = 0;
};

}  // namespace einrel::contraction
