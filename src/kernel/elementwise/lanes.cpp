#include "kernel/elementwise/lanes.h"

#include <algorithm>

namespace einrel {
namespace {

/// A multiple of the lanes of every vector.
constexpr std::int64_t lane_unit = 16;

/// a / b.
std::int64_t rounded_up(std::int64_t a, std::int64_t b) { return a / b + (a % b == 0 ? 0 : 1); }

std::vector<Loop> loops_around(const std::vector<Loop>& loops, const Cut& cut) {
  const std::size_t inside = std::min(cut.whole + 1, loops.size());
  return {loops.begin(), loops.end() - static_cast<std::ptrdiff_t>(inside)};
}

}  // namespace

Cut cut_of(const std::vector<Loop>& loops, std::int64_t most_lanes) {
  Cut cut;
  while (cut.whole < loops.size() && loops[loops.size() - 1 - cut.whole].extent <= most_lanes / cut.inside) {
    cut.inside *= loops[loops.size() - 1 - cut.whole].extent;
    ++cut.whole;
  }
  if (cut.whole == loops.size()) return cut;
  const std::int64_t extent = loops[loops.size() - 1 - cut.whole].extent;
  const std::int64_t most = most_lanes / cut.inside;
  const std::int64_t ranges = rounded_up(extent, most);
  cut.range = rounded_up(extent, ranges);
  if (cut.inside == 1) cut.range = std::min(most, rounded_up(cut.range, lane_unit) * lane_unit);
  cut.ranges = rounded_up(extent, cut.range);
  return cut;
}

Lanes::Lanes(std::vector<Loop> loops, std::size_t quantity_count, std::int64_t most_lanes)
    : cut_(cut_of(loops, most_lanes)),
      total_(position_count(loops)),
      around_(loops_around(loops, cut_), std::vector<std::int64_t>(quantity_count, 0)),
      even_(quantity_count, true),
      base_(quantity_count, 0) {
  const Loop none{1, false, std::vector<std::int64_t>(quantity_count, 0)};
  const auto whole = loops.end() - static_cast<std::ptrdiff_t>(cut_.whole);
  const Loop cut = whole == loops.begin() ? none : *(whole - 1);
  cut_extent_ = cut.extent;
  cut_steps_ = cut.steps;
  find_patches({whole, loops.end()}, cut);
  select(0);
}

void Lanes::find_patches(const std::vector<Loop>& whole, const Loop& cut) {
  const std::size_t quantities = base_.size();
  std::vector<Loop> block{cut};  // the loops of a longest block
  block[0].extent = cut_.range;
  block.insert(block.end(), whole.begin(), whole.end());
  for (std::size_t l = 0; l + 1 < block.size(); ++l) {
    for (std::size_t q = 0; q < quantities && block[l].extent > 1; ++q) {
      even_[q] = even_[q] && block[l].steps[q] == multiply_wrapping(block[l + 1].steps[q], block[l + 1].extent);
    }
  }
  columns_ = static_cast<std::size_t>(block.back().extent);
  steps_ = block.back().steps;
  block.pop_back();
  row_steps_.assign(quantities, 0);
  if (!block.empty()) {
    rows_ = static_cast<std::size_t>(block.back().extent);
    row_steps_ = block.back().steps;
    block.pop_back();
  }
  patches_per_range_ = block.empty() ? 0 : static_cast<std::size_t>(position_count(block) / cut_.range);
  Odometer patches(std::move(block), std::vector<std::int64_t>(quantities, 0));
  for (std::int64_t p = 0; p < patches.count(); ++p, patches.advance()) {
    starts_.insert(starts_.end(), patches.quantities().begin(), patches.quantities().end());
  }
}

std::int64_t Lanes::begin_of(std::int64_t block) const {
  return (block / cut_.ranges * cut_extent_ + block % cut_.ranges * cut_.range) * cut_.inside;
}

void Lanes::select(std::int64_t block) {
  const std::int64_t around = block / cut_.ranges;
  if (around == around_position_ + 1) {
    around_.advance();
  } else if (around != around_position_) {
    around_.seek(around);
  }
  around_position_ = around;
  const std::int64_t begin = block % cut_.ranges * cut_.range;
  for (std::size_t q = 0; q < base_.size(); ++q) {
    base_[q] = add_wrapping(around_.quantities()[q], multiply_wrapping(begin, cut_steps_[q]));
  }
  const auto range = static_cast<std::size_t>(std::min(cut_.range, cut_extent_ - begin));
  if (cut_.whole == 0) {
    columns_ = range;
  } else if (cut_.whole == 1) {
    rows_ = range;
  } else {
    patches_ = range * patches_per_range_;
  }
}

}  // namespace einrel
