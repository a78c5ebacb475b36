#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/nest.h"

namespace einrel {

/// How loops are cut into blocks of at most so many positions: a block is all of the `whole` innermost loops and a
/// range of the loop around them.
struct Cut {
  std::size_t whole = 0;
  std::int64_t inside = 1;  ///< positions of the whole loops together
  std::int64_t range = 1;   ///< of the loop around them; the last range may be shorter
  std::int64_t ranges = 1;
};
/// In a block that is reduced where it lies: it takes no memory, and reading pauses between blocks.
inline constexpr std::int64_t most_lanes_in_place = 16384;
Cut cut_of(const std::vector<Loop>& loops, std::int64_t most_lanes);

/// A block: consecutive positions ("lanes") of a group of loops that are computed together. It consists of patches:
/// rows of lanes, as long as the innermost loop or a range of it. Inside a patch quantities grow evenly from lane to
/// lane of a row, and from row to row.
class Lanes {
 public:
  /// The last loop is the innermost.
  Lanes(std::vector<Loop> loops, std::size_t quantity_count, std::int64_t most_lanes);

  /// The number of positions of all loops.
  std::int64_t total() const { return total_; }
  /// The number of blocks, and of lanes in the longest.
  std::int64_t blocks() const { return around_.count() * cut_.ranges; }
  std::int64_t longest() const { return cut_.inside * cut_.range; }
  /// The first position of a block.
  std::int64_t begin_of(std::int64_t block) const;
  /// Moves to a block. O(quantities), fastest to the next one.
  void select(std::int64_t block);

  std::size_t count() const { return patches_ * rows_ * columns_; }
  std::size_t patches() const { return patches_; }
  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  /// What these loops contribute to a quantity at the first lane of a patch.
  std::int64_t at(std::size_t patch, std::size_t quantity) const {
    return add_wrapping(starts_[patch * steps_.size() + quantity], base_[quantity]);
  }
  /// By how much a quantity grows from lane to lane of a row, and from row to row.
  std::int64_t step(std::size_t quantity) const { return steps_[quantity]; }
  std::int64_t row_step(std::size_t quantity) const { return row_steps_[quantity]; }
  /// Whether the quantity grows by step() from each lane of the block to the next.
  bool is_even(std::size_t quantity) const { return even_[quantity]; }

 private:
  void find_patches(const std::vector<Loop>& whole, const Loop& cut);

  Cut cut_;
  std::int64_t total_;
  std::int64_t cut_extent_ = 1;
  Odometer around_;  // the loops around the one that is cut
  std::int64_t around_position_ = 0;
  std::vector<std::int64_t> cut_steps_;
  std::vector<std::int64_t> row_steps_;
  std::vector<std::int64_t> steps_;
  std::vector<bool> even_;
  std::vector<std::int64_t> starts_;  // of the patches of a longest block, relative to base_
  std::vector<std::int64_t> base_;
  std::size_t patches_per_range_ = 1;  // per position of the loop that is cut; 0: that loop is inside a patch
  std::size_t patches_ = 1;
  std::size_t rows_ = 1;
  std::size_t columns_ = 1;
};

}  // namespace einrel
