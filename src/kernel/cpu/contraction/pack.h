#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/cpu/contraction/pack_ops.h"
#include "kernel/cpu/contraction/product.h"

namespace einrel::contraction {

/// How an operand is copied into panels.
enum class PackingWay : std::uint8_t {
  lines,      ///< neighbouring lines lie side by side in memory: copied together
  inner,      ///< neighbouring inner positions do: blocks are transposed
  one_by_one  ///< neither, or the elements are converted from a type that is rare here
};
PackingWay packing_way(const Side& side, const std::vector<Loop>& lines, const std::vector<Loop>& inner, DType type);

/// Nanoseconds per element, roughly.
double packing_nanoseconds(PackingWay way, DType type);

/// Copies an operand into panels that tiles are computed from: some of its lines (rows or columns) at some inner
/// positions, converted to T, with the pad where guards fail.
template <class T>
class Packer {
 public:
  Packer(const Side& side, std::vector<Loop> lines, std::vector<Loop> inner, DType type);

  /// Flattened positions that the next panels are taken from.
  void select_lines(std::int64_t begin, std::int64_t count);
  void select_inner(std::int64_t begin, std::int64_t count);
  /// Where the operand lies, and every quantity at the position of the batch.
  void select_batch(const std::byte* operand, const std::int64_t* quantities);

  /// to[p * width + l] = element p of line first + l, counted from the selected ones, for all selected inner positions.
  /// Of the panel's lines only `count` exist; the others are 0.
  void pack(std::int64_t first, std::int64_t count, std::int64_t width, T* to);

 private:
  /// A coordinate of a padded operand.
  struct Bound {
    std::size_t quantity = 0;
    std::int64_t extent = 0;
    std::int64_t base = 0;
    std::vector<std::int64_t> of_lines;
    std::vector<std::int64_t> of_inner;
  };
  /// Inner positions where the same lines are inside all bounds: order_[begin, end).
  struct Group {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  bool is_inside(std::int64_t line, std::int64_t position) const;
  bool same_bounds(std::int64_t position, std::int64_t other) const;
  void group_inner();
  template <class Stored>
  void pack_lines(std::int64_t first, std::int64_t count, std::int64_t width, T* to) const;
  template <class Stored>
  void pack_inner(std::int64_t first, std::int64_t count, std::int64_t width, T* to);
  template <class Stored>
  void pack_one_by_one(std::int64_t first, std::int64_t count, std::int64_t width, T* to) const;
  void fill(const Group& group, std::int64_t first, std::int64_t end, std::int64_t width, T value, T* to) const;

  Side side_;
  std::vector<Loop> lines_;
  std::vector<Loop> inner_;
  PackingWay way_;
  T pad_;
  std::int64_t lines_begin_ = 0;
  std::int64_t inner_begin_ = 0;
  std::vector<std::int64_t> line_offsets_;
  std::vector<std::int64_t> inner_offsets_;
  std::vector<Bound> bounds_;
  std::vector<std::int32_t> order_;  ///< inner positions
  std::vector<Group> groups_;
  std::vector<T> pads_;       ///< a line of the pad
  std::vector<T> zeros_;      ///< a line that does not exist
  std::vector<T> converted_;  ///< lines of bf16 or f16 as f32
  const std::byte* operand_ = nullptr;
  std::int64_t base_ = 0;
};

}  // namespace einrel::contraction
