#include "kernel/products/direct.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "kernel/cancel.h"
#include "kernel/products/direct_tile.h"

namespace einrel::contraction {
namespace {

/// Tiles of one size that follow each other along the rows, or along the lanes.
struct TileGroup {
  std::int64_t begin = 0;
  std::int64_t size = 0;  ///< of each tile, in rows or lanes
  std::int64_t count = 0;
};

/// A few groups, one after another.
class TileGroups {
 public:
  void add(TileGroup group) { groups_.at(count_++) = group; }
  const TileGroup* begin() const { return groups_.data(); }
  const TileGroup* end() const { return groups_.data() + count_; }
  const TileGroup& front() const { return groups_.front(); }

  std::int64_t tiles() const {
    return std::accumulate(begin(), end(), std::int64_t{0},
                           [](std::int64_t tiles, const TileGroup& group) { return tiles + group.count; });
  }

 private:
  std::array<TileGroup, 4> groups_{};
  std::size_t count_ = 0;
};

/// Tiles of at most `most` rows, as even as can be: at most two groups.
TileGroups row_groups(std::int64_t rows, std::int64_t most) {
  const std::int64_t tiles = ceil_div(rows, most);
  const std::int64_t height = ceil_div(rows, tiles);
  const std::int64_t higher = rows - tiles * (height - 1);
  TileGroups groups;
  groups.add({0, height, higher});
  if (higher < tiles) groups.add({higher * height, height - 1, tiles - higher});
  return groups;
}

/// Tiles of 4, 2 and 1 vectors, and one for the last lanes of all, which may fill a vector in part.
TileGroups lane_groups(std::int64_t lanes, std::int64_t vector, std::int64_t most_vectors) {
  TileGroups groups;
  std::int64_t begin = 0;
  for (std::int64_t vectors = most_vectors; vectors >= 1 && begin < lanes; vectors /= 2) {
    const std::int64_t size = vectors * vector;
    const std::int64_t whole = (lanes - begin) / size;
    if (whole > 0) groups.add({begin, size, whole});
    begin += whole * size;
    const std::int64_t rest = lanes - begin;
    if (rest > size - vector) {  // all of its vectors are used
      groups.add({begin, rest, 1});
      begin = lanes;
    }
  }
  return groups;
}

struct DirectShape {
  std::int64_t rows = 0;
  std::int64_t low_rows = 0;  ///< so many rows leave registers for 4 vectors
  std::int64_t vector = 0;
  const char* instructions = "";
};

double inner_count(const DirectPlan& plan) {
  return static_cast<double>(plan.inner.extent) * positions(plan.outer_inner);
}

/// Bytes that one position of the rest and of `repeated` reads and writes.
double product_bytes(const DirectPlan& plan) {
  const auto m = static_cast<double>(plan.row.extent);
  const auto n = static_cast<double>(plan.lanes.extent);
  const double k = inner_count(plan);
  const double of_a = m * k * (plan.a_by_lanes ? n : 1);
  return static_cast<double>(size_of(plan.product.match.type)) * (of_a + k * n + m * n);
}

/// Whether rows of A evict one another while a B that fits in the first-level cache is read for them.
bool rows_collide(const DirectPlan& plan) {
  constexpr double small = 2 * static_cast<double>(nominal_processor.first_cache);  // of which some may stay
  const std::int64_t distance = plan.row.steps[plan.product.a.reading.quantity];
  return plan.row.extent > 1 &&
         distance * static_cast<std::int64_t>(size_of(plan.product.match.type)) % nominal_processor.page_bytes == 0 &&
         product_bytes(plan) <= small;
}

DirectShape kernel_shape(const DirectPlan& plan) {
  const auto shape = [&](const auto& kernels) {
    if (!plan.product.match.reduces) return DirectShape{1, 1, kernels.vector, kernels.instructions};
    if (plan.a_by_lanes) {
      return DirectShape{static_cast<std::int64_t>(kernels.a_by_lanes.size()), 0, kernels.vector, kernels.instructions};
    }
    const std::int64_t low_rows = kernels.rows / 2;
    return DirectShape{rows_collide(plan) ? low_rows : kernels.rows, low_rows, kernels.vector, kernels.instructions};
  };
  return plan.product.match.type == DType::f32 ? shape(direct_kernels<float>()) : shape(direct_kernels<double>());
}

/// Tiles of so many rows along the lanes. Rows of outer products are written in one stretch.
TileGroups lane_tiles(const DirectPlan& plan, const DirectShape& shape, std::int64_t rows, std::int64_t lanes) {
  if (plan.product.match.reduces) {
    return lane_groups(lanes, shape.vector, rows <= shape.low_rows ? 4 : 2);
  }
  TileGroups groups;
  groups.add({0, lanes, 1});
  return groups;
}

// --- the plan ---

/// Why an operand or the result cannot be used where it lies; "" if it can.
std::string direct_obstacle(const Product& product) {
  const Match& match = product.match;
  if (match.combination != Combination{} || !is_float(match.type)) return "it is no sum of a product of two floats";
  for (const Side* side : {&product.a, &product.b}) {
    if (side->reading.dtype != match.type) return "an operand is stored in another type";
    if (!side->reading.guards.empty()) return "an operand is padded";
    if (!side->reading.aligned) return "an operand is misaligned";
    if (side->factor != 1) return "an operand has a factor";
  }
  if (product.result != match.type) return "its result is stored in another type";
  return product.result_aligned ? "" : "its result is misaligned";
}

/// The one whose neighbours lie closest together in a quantity, among those that are long enough to fill tiles: rows
/// that lie far apart may evict one another from the cache.
std::size_t closest(const std::vector<Loop>& loops, std::size_t quantity) {
  constexpr std::int64_t long_enough = 24;
  const std::int64_t least = std::min(long_enough, loops[longest(loops)].extent);
  std::optional<std::size_t> best;
  for (std::size_t l = 0; l < loops.size(); ++l) {
    if (loops[l].extent < least) continue;
    if (!best || std::abs(loops[l].steps[quantity]) < std::abs(loops[*best].steps[quantity])) best = l;
  }
  return *best;
}

/// By how much computing is slower than from the first-level cache, judged by how B is walked again for every few rows.
double slowness(const DirectPlan& plan, std::int64_t tile_rows) {
  constexpr auto first_cache = static_cast<double>(nominal_processor.first_cache);
  constexpr auto second_cache = static_cast<double>(nominal_processor.second_cache);
  constexpr auto third_cache = static_cast<double>(nominal_processor.third_cache);
  const double bytes = product_bytes(plan);
  if (plan.row.extent > tile_rows && bytes > (plan.product.large_operands ? 1.5 * first_cache : 0.48 * second_cache)) {
    // Whole rows far from one another: the further from the processor, the slower.
    const bool is_dense = plan.inner.steps[plan.product.b.reading.quantity] == plan.lanes.extent;
    // The next elements of columns of A lie in other pages, which the processor does not foresee either.
    const std::int64_t a_step = std::abs(plan.inner.steps[plan.product.a.reading.quantity]);
    const bool is_far =
        a_step * static_cast<std::int64_t>(size_of(plan.product.match.type)) >= nominal_processor.page_bytes;
    const double of_rows = bytes > 1.2 * third_cache ? 2.2 : is_dense ? 1.35 : 1.8;
    return of_rows * (is_far ? 1.2 : 1);
  }
  // Short rows, or ones that no single loop leads to, are not foreseen by the processor.
  constexpr std::int64_t short_row = 4 * nominal_processor.line_bytes;
  const bool is_short = plan.lanes.extent * static_cast<std::int64_t>(size_of(plan.product.match.type)) < short_row;
  return !plan.outer_inner.empty() || (bytes > first_cache && is_short) ? 1.3 : 1.0;
}

/// To read the operands once and to write the result.
double memory_seconds(const DirectPlan& plan, std::int64_t tile_rows) {
  const auto size = static_cast<std::int64_t>(size_of(plan.product.match.type));
  const double products = positions(plan.rest) * static_cast<double>(plan.repeated.extent);
  const double results = products * static_cast<double>(plan.row.extent * plan.lanes.extent * size);
  // Rows of B that lie a multiple of a page apart evict one another before the next rows of A meet them.
  const std::int64_t distance = plan.inner.steps[plan.product.b.reading.quantity];
  const bool collides = plan.row.extent > tile_rows && inner_count(plan) > 4 && distance != 0 &&
                        distance * size % nominal_processor.page_bytes == 0;
  return (collides ? 3 : 1) * transfer_seconds(products * product_bytes(plan)) + transfer_seconds(results);
}

double modelled_seconds(const DirectPlan& plan) {
  const DirectShape shape = kernel_shape(plan);
  const double k = inner_count(plan);
  double cycles = 0;
  double calls = 0;
  for (const TileGroup& rows : row_groups(plan.row.extent, shape.rows)) {
    for (const TileGroup& lanes : lane_tiles(plan, shape, rows.size, plan.lanes.extent)) {
      const auto r = static_cast<double>(rows.size);
      const auto v = static_cast<double>(ceil_div(lanes.size, shape.vector));
      const double loads = plan.a_by_lanes ? r * v + v : r + v;
      const double tiles = static_cast<double>(rows.count * lanes.count);
      cycles += tiles * (k * std::max({r * v, loads, 2.0}) / nominal_processor.operations_per_cycle + r * v + 8);
      calls += static_cast<double>(std::min(rows.count, lanes.count));
    }
  }
  const double calls_per_repeat = calls / static_cast<double>(plan.repeated_block);
  const double one = nominal_processor.cycle_seconds * cycles * slowness(plan, shape.rows) + 15e-9 * calls_per_repeat;
  const double products = positions(plan.rest) * static_cast<double>(plan.repeated.extent);
  return 2e-7 + std::max(products * one, memory_seconds(plan, shape.rows)) +
         5e-8 * products / static_cast<double>(plan.repeated_block);
}

std::int64_t unit_count(const DirectPlan& plan) {
  return position_count(plan.rest) * ceil_div(plan.repeated.extent, plan.repeated_block) *
         ceil_div(plan.row.extent, plan.row_block) * ceil_div(plan.lanes.extent, plan.lane_block);
}

/// Whether operands and result are too large to be in the second-level cache from the run before: others need most of
/// it.
bool is_large(const Product& product) {
  constexpr std::int64_t most_cached = nominal_processor.second_cache / 4;
  const std::int64_t rows = position_count(product.rows);
  const std::int64_t columns = position_count(product.columns);
  const std::int64_t inner = position_count(product.inner);
  const std::int64_t elements = position_count(product.batch) * (rows * inner + inner * columns + rows * columns);
  return elements > most_cached / static_cast<std::int64_t>(size_of(product.match.type));
}

/// One or two rows with a large matrix. There have to be parts for several threads without rows of the matrix being
/// cut: several matrices, or a reduction that is long enough to be split into several (split.h).
bool can_stream(const DirectPlan& plan) {
  constexpr std::int64_t several = 8;
  constexpr std::int64_t least_inner = 64;
  constexpr std::int64_t least_lanes = 512;
  constexpr std::int64_t most_lanes = nominal_processor.second_cache / 64;  // whose results stay there
  const std::int64_t matrices = position_count(plan.rest) * plan.repeated.extent;
  return plan.product.match.reduces && !plan.a_by_lanes && plan.row.extent <= 2 && plan.outer_inner.empty() &&
         plan.inner.extent >= (matrices == 1 ? several : 1) * least_inner && (matrices == 1 || matrices >= several) &&
         plan.lanes.extent >= least_lanes && plan.lanes.extent <= most_lanes;
}

/// Blocks and parts, for chosen loops.
void finish(DirectPlan& plan) {
  plan.streams = can_stream(plan);
  plan.fetches = is_large(plan.product);
  const DirectShape shape = kernel_shape(plan);
  const TileGroups rows = row_groups(plan.row.extent, shape.rows);
  const bool one_tile = rows.tiles() == 1 && lane_tiles(plan, shape, rows.front().size, plan.lanes.extent).tiles() == 1;
  // Several tiles of a product one after another, while its operands are in the first-level cache.
  constexpr auto first_cache = static_cast<double>(nominal_processor.first_cache);
  const double most = one_tile ? 4096 : first_cache / 2 / product_bytes(plan);
  plan.repeated_block = std::clamp<std::int64_t>(static_cast<std::int64_t>(most), 1, plan.repeated.extent);
  plan.seconds = modelled_seconds(plan);

  // A few inner positions at a time, so that B is read in a few long stretches; the result stays in the cache.
  const double k = inner_count(plan);
  const bool small = product_bytes(plan) < first_cache;
  const std::int64_t few_rows = plan.row.extent <= 2 && !plan.streams ? 4 : stream_inner;
  constexpr double longest_sum = 768;  // short of most_additions
  plan.inner_block = small ? static_cast<std::int64_t>(std::min(k, longest_sum)) : rows.tiles() > 1 ? 128 : few_rows;
  plan.outer_block = std::max<std::int64_t>(1, plan.inner_block / plan.inner.extent);
  const std::int64_t unit = 4 * shape.vector;
  plan.lane_block = plan.lanes.extent;
  if (!small && !plan.streams) {
    constexpr std::int64_t most_results = nominal_processor.second_cache / 32;
    const std::int64_t most_lanes = most_results / plan.row.extent;
    const std::int64_t fair =
        plan.seconds > 8 * unpacked_part_seconds ? ceil_div(plan.lanes.extent, 8) : plan.lanes.extent;
    plan.lane_block = ceil_div(std::max<std::int64_t>(std::min(most_lanes, fair), 256), unit) * unit;
  }
  // Many rows are cut where there is nothing else to cut.
  const std::int64_t wanted = parts_for(plan.seconds, unpacked_part_seconds);
  plan.row_block = plan.row.extent;
  const std::int64_t row_blocks = wanted / unit_count(plan);
  if (row_blocks >= 2) {
    const std::int64_t height = rows.front().size;
    plan.row_block = std::max<std::int64_t>(64, ceil_div(ceil_div(plan.row.extent, row_blocks), height) * height);
  }
  plan.parts = std::min(wanted, unit_count(plan));
}

/// The plan for these loops; nullopt when an offset table would be too long, whatever the processor.
std::optional<DirectPlan> plan_of(const Product& product, const Loop& lanes, bool a_by_lanes, std::vector<Loop> rest) {
  constexpr std::int64_t longest_table = 1 << 16;
  DirectPlan plan{product, a_by_lanes, lanes, single_loop(product), {}, {}, std::move(rest), single_loop(product)};
  std::vector<Loop> rows = product.rows;
  if (!rows.empty()) {
    const std::size_t row = closest(rows, product.a.reading.quantity);
    plan.row = rows[row];
    rows = without(std::move(rows), row);
    plan.rest.insert(plan.rest.end(), rows.begin(), rows.end());
  }
  const std::size_t inner = longest(product.inner);
  plan.inner = product.inner[inner];
  plan.outer_inner = without(product.inner, inner);
  if (position_count(plan.outer_inner) > longest_table) return std::nullopt;
  if (!plan.rest.empty()) {
    if (!product.match.reduces) order_by_step(plan.rest, output_quantity);  // the result is written in order
    const std::size_t repeated = product.match.reduces ? longest(plan.rest) : plan.rest.size() - 1;
    plan.repeated = plan.rest[repeated];
    plan.rest = without(std::move(plan.rest), repeated);
  }
  finish(plan);
  return plan;
}

std::vector<Loop> joined(std::vector<Loop> x, const std::vector<Loop>& y) {
  x.insert(x.end(), y.begin(), y.end());
  return x;
}

/// Every plan for one orientation.
std::vector<DirectPlan> plans_of(const Product& product) {
  const std::size_t a = product.a.reading.quantity;
  const std::size_t b = product.b.reading.quantity;
  std::vector<DirectPlan> plans;
  const auto add = [&](std::optional<DirectPlan> plan) {
    if (plan) plans.push_back(std::move(*plan));
  };
  for (std::size_t c = 0; c < product.columns.size(); ++c) {
    const Loop& lanes = product.columns[c];
    if (lanes.steps[b] != 1 || lanes.steps[output_quantity] != 1) continue;
    add(plan_of(product, lanes, false, joined(product.batch, without(product.columns, c))));
  }
  for (std::size_t l = 0; l < product.batch.size(); ++l) {
    const Loop& lanes = product.batch[l];
    if (lanes.steps[a] != 1 || lanes.steps[b] != 1 || lanes.steps[output_quantity] != 1) continue;
    add(plan_of(product, lanes, true, joined(without(product.batch, l), product.columns)));
  }
  return plans;
}

// --- running it ---

/// What all parts share.
struct PreparedDirect {
  explicit PreparedDirect(DirectPlan of)
      : plan(std::move(of)),
        shape(kernel_shape(plan)),
        block(tiles_of(plan.row_block, plan.lane_block)),
        last_rows(tiles_of(last(plan.row.extent, plan.row_block), plan.lane_block)),
        last_lanes(tiles_of(plan.row_block, last(plan.lanes.extent, plan.lane_block))),
        corner(tiles_of(last(plan.row.extent, plan.row_block), last(plan.lanes.extent, plan.lane_block))),
        units(unit_count(plan)),
        lane_blocks(ceil_div(plan.lanes.extent, plan.lane_block)),
        row_blocks(ceil_div(plan.row.extent, plan.row_block)),
        repeats(ceil_div(plan.repeated.extent, plan.repeated_block)) {
    if (!plan.rest.empty()) rest.emplace(plan.rest, plan.product.bases);
    const std::int64_t count = position_count(plan.outer_inner);
    const auto fill = [&](const Side& side, std::vector<std::int64_t>& to) {
      to.resize(static_cast<std::size_t>(count));
      fill_offsets(plan.outer_inner, side.reading.quantity, 0, count, to.data());
    };
    fill(plan.product.a, a_outer);
    fill(plan.product.b, b_outer);
  }

  /// Units of one position of the other loops.
  std::int64_t per_position() const { return repeats * row_blocks * lane_blocks; }

  /// The tiles of a unit.
  struct Tiles {
    TileGroups rows;
    TileGroups lanes;
  };
  Tiles tiles_of(std::int64_t rows, std::int64_t lanes) const {
    const TileGroups groups = row_groups(rows, shape.rows);
    return {groups, lane_tiles(plan, shape, groups.front().size, lanes)};
  }
  static std::int64_t last(std::int64_t extent, std::int64_t block) { return (extent - 1) % block + 1; }

  const Tiles& tiles_at(bool is_last_row, bool is_last_lane) const {
    return is_last_row ? (is_last_lane ? corner : last_rows) : is_last_lane ? last_lanes : block;
  }

  DirectPlan plan;
  DirectShape shape;
  Tiles block;  ///< of whole blocks, of the last rows, of the last lanes, and of both
  Tiles last_rows;
  Tiles last_lanes;
  Tiles corner;
  std::int64_t units = 1;
  std::int64_t lane_blocks = 1;
  std::int64_t row_blocks = 1;
  std::int64_t repeats = 1;
  std::optional<Odometer> rest;  ///< most small products have none
  /// Of the inner positions but those of the innermost loop.
  std::vector<std::int64_t> a_outer;
  std::vector<std::int64_t> b_outer;
};

/// Computes units of one part.
template <class T>
class DirectPart {
 public:
  DirectPart(const PreparedDirect& prepared, const Arrays& arrays)
      : prepared_(prepared),
        plan_(prepared.plan),
        kernels_(direct_kernels<T>()),
        a_(reinterpret_cast<const T*>(arrays.operands[plan_.product.a.operand])),
        b_(reinterpret_cast<const T*>(arrays.operands[plan_.product.b.operand])),
        z_(reinterpret_cast<T*>(arrays.result)),
        a_quantity_(plan_.product.a.reading.quantity),
        b_quantity_(plan_.product.b.reading.quantity),
        outer_(static_cast<std::int64_t>(prepared.a_outer.size())) {
    base_.a_row = plan_.row.steps[a_quantity_];
    base_.z_row = plan_.row.steps[output_quantity];
    base_.a_inner = plan_.inner.steps[a_quantity_];
    base_.b_inner = plan_.inner.steps[b_quantity_];
    base_.a_outer = prepared.a_outer.data();
    base_.b_outer = prepared.b_outer.data();
    base_.scale = static_cast<T>(plan_.product.match.scale);
  }

  void run(std::int64_t part) {
    const bool single = prepared_.units == 1;  // small: to find out where it begins would take as long as to compute it
    const std::int64_t begin = single ? 0 : prepared_.units * part / plan_.parts;
    const std::int64_t end = single ? 1 : prepared_.units * (part + 1) / plan_.parts;
    std::int64_t position = single ? 0 : begin / prepared_.per_position();
    std::optional<Odometer> rest = prepared_.rest;
    if (rest) rest->seek(position);
    for (std::int64_t unit = begin; unit < end; ++unit) {
      throw_if_cancelled();
      for (; !single && position < unit / prepared_.per_position(); ++position) rest->advance();
      const Start start = single ? Start() : start_of(unit);
      tiles_ = &prepared_.tiles_at(start.row + plan_.row_block >= plan_.row.extent,
                                   start.lane + plan_.lane_block >= plan_.lanes.extent);
      compute_unit(rest ? rest->quantities() : plan_.product.bases, start);
    }
  }

 private:
  /// Where a unit begins.
  struct Start {
    std::int64_t repeat = 0;
    std::int64_t row = 0;
    std::int64_t lane = 0;
  };

  Start start_of(std::int64_t unit) const {
    const std::int64_t block = unit / prepared_.lane_blocks;
    return {block / prepared_.row_blocks % prepared_.repeats * plan_.repeated_block,
            block % prepared_.row_blocks * plan_.row_block, unit % prepared_.lane_blocks * plan_.lane_block};
  }

  void compute_unit(const std::vector<std::int64_t>& at, Start start) {
    repeats_ = std::min(plan_.repeated_block, plan_.repeated.extent - start.repeat);
    const auto offset = [&](std::size_t quantity) {
      return at[quantity] + start.repeat * plan_.repeated.steps[quantity] + start.row * plan_.row.steps[quantity] +
             start.lane * plan_.lanes.steps[quantity];
    };
    DirectTiles<T> tiles = base_;
    tiles.a = a_ + offset(a_quantity_);
    tiles.b = b_ + offset(b_quantity_);
    tiles.z = z_ + offset(output_quantity);
    tiles.accumulate = plan_.product.accumulate;
    tiles.b_ahead = (outer_ == 1 ? plan_.inner_block : plan_.inner.extent) * tiles.b_inner;
    if (outer_ == 1) {
      tiles.outer = 1;
      for (std::int64_t p = 0; p < plan_.inner.extent; p += plan_.inner_block) {
        tiles.inner = std::min(plan_.inner_block, plan_.inner.extent - p);
        compute_tiles(tiles);
        tiles.a += tiles.inner * tiles.a_inner;
        tiles.b += tiles.inner * tiles.b_inner;
        tiles.accumulate = true;
      }
    } else {
      tiles.inner = plan_.inner.extent;
      for (std::int64_t o = 0; o < outer_; o += plan_.outer_block) {
        tiles.outer = std::min(plan_.outer_block, outer_ - o);
        compute_tiles(tiles);
        tiles.a_outer += tiles.outer;
        tiles.b_outer += tiles.outer;
        tiles.accumulate = true;
      }
    }
  }

  /// All rows and lanes of a unit for some inner positions. One call of a kernel goes over repeated products, over the
  /// rows while B is in the cache, or over the lanes.
  void compute_tiles(const DirectTiles<T>& of_unit) {
    const bool over_rows = tiles_->rows.tiles() > 1;
    for (const TileGroup& lanes : tiles_->lanes) {
      const std::int64_t lane_calls = repeats_ > 1 || over_rows ? lanes.count : 1;
      for (std::int64_t l = 0; l < lane_calls; ++l) {
        for (const TileGroup& rows : tiles_->rows) {
          const std::int64_t row_calls = repeats_ > 1 || !over_rows ? rows.count : 1;
          for (std::int64_t r = 0; r < row_calls; ++r) {
            call(of_unit, rows, r, lanes, l, over_rows);
          }
        }
      }
    }
  }

  void call(DirectTiles<T> tiles, const TileGroup& rows, std::int64_t row_tile, const TileGroup& lanes,
            std::int64_t lane_tile, bool over_rows) const {
    const std::int64_t row = rows.begin + row_tile * rows.size;
    const std::int64_t lane = lanes.begin + lane_tile * lanes.size;
    tiles.a += row * tiles.a_row + (plan_.a_by_lanes ? lane : 0);
    tiles.b += lane;
    tiles.z += row * tiles.z_row + lane;
    tiles.lanes = lanes.size;
    if (repeats_ > 1) {
      tiles.count = repeats_;
      tiles.a_tile = plan_.repeated.steps[a_quantity_];
      tiles.b_tile = plan_.repeated.steps[b_quantity_];
      tiles.z_tile = plan_.repeated.steps[output_quantity];
    } else if (over_rows) {
      tiles.count = rows.count;
      tiles.a_tile = rows.size * tiles.a_row;
      tiles.z_tile = rows.size * tiles.z_row;
    } else {
      tiles.count = lanes.count;
      tiles.a_tile = plan_.a_by_lanes ? lanes.size : 0;
      tiles.b_tile = lanes.size;
      tiles.z_tile = lanes.size;
    }
    function(rows.size, tiles)(tiles);
  }

  bool is_quad(std::int64_t rows, const DirectTiles<T>& tiles) const {
    return kernels_.quads != nullptr && !plan_.a_by_lanes && rows == 4 && tiles.lanes == 4 && tiles.inner == 4 &&
           tiles.outer == 1 && tiles.a_inner == 1 && tiles.a_row == 4 && tiles.z_row == 4;
  }

  DirectFunction<T> function(std::int64_t rows, const DirectTiles<T>& tiles) const {
    if (!plan_.product.match.reduces) return plan_.a_by_lanes ? kernels_.outer_by_lanes : kernels_.outer;
    if (is_quad(rows, tiles)) return kernels_.quads;
    const auto row = static_cast<std::size_t>(rows - 1);
    const std::int64_t vectors = ceil_div(tiles.lanes, prepared_.shape.vector);
    if (plan_.a_by_lanes) return kernels_.a_by_lanes[row][vectors == 1 ? 0 : 1];
    constexpr auto most_vectors = static_cast<std::int64_t>(stream_vectors);
    if (plan_.streams && tiles.inner == stream_inner && tiles.lanes == most_vectors * prepared_.shape.vector) {
      return kernels_.streams[row];
    }
    const std::size_t width = vectors > 1 ? (vectors == 2 ? 3 : 4) : tiles.lanes <= 4 ? 0 : tiles.lanes <= 8 ? 1 : 2;
    constexpr std::size_t whole_vector = 2;
    if (!plan_.fetches && width >= whole_vector && vectors <= 2) return kernels_.cached[row][width - whole_vector];
    return kernels_.constant_a[row][width];
  }

  const PreparedDirect& prepared_;
  const DirectPlan& plan_;
  const DirectKernels<T>& kernels_;
  const T* a_;
  const T* b_;
  T* z_;
  std::size_t a_quantity_;
  std::size_t b_quantity_;
  const PreparedDirect::Tiles* tiles_ = nullptr;  ///< of the unit at hand
  DirectTiles<T> base_;
  std::int64_t outer_ = 1;
  std::int64_t repeats_ = 1;
};

}  // namespace

std::variant<DirectPlan, std::string> plan_direct(const Product& product) {
  if (std::string reason = direct_obstacle(product); !reason.empty()) return reason;
  std::vector<DirectPlan> plans = plans_of(product);
  for (DirectPlan& plan : plans_of(transposed(product))) plans.push_back(std::move(plan));
  if (plans.empty()) return "no loop is contiguous in an operand and the result";
  return *std::min_element(plans.begin(), plans.end(),
                           [](const DirectPlan& x, const DirectPlan& y) { return x.seconds < y.seconds; });
}

std::int64_t additions(const DirectPlan& plan) {
  const std::int64_t outer = position_count(plan.outer_inner);
  if (outer == 1) return plan.inner_block + ceil_div(plan.inner.extent, plan.inner_block);
  return plan.outer_block * plan.inner.extent + ceil_div(outer, plan.outer_block);
}

PreparedKernel prepare(DirectPlan plan) {
  const auto prepared = std::make_shared<const PreparedDirect>(std::move(plan));
  const auto run = [prepared](const Arrays& arrays, Workspace, std::int64_t part) {
    if (prepared->plan.product.match.type == DType::f32) {
      DirectPart<float>(*prepared, arrays).run(part);
    } else {
      DirectPart<double>(*prepared, arrays).run(part);
    }
  };
  return {0, 0, {Stage{prepared->plan.parts, run}}};
}

std::string describe(const DirectPlan& plan) {
  const DirectShape shape = kernel_shape(plan);
  const TileGroups rows = row_groups(plan.row.extent, shape.rows);
  const std::int64_t lanes = lane_tiles(plan, shape, rows.front().size, plan.lanes.extent).front().size;
  return fmt::format("direct {}x{} ({})", rows.front().size, lanes, shape.instructions);
}

}  // namespace einrel::contraction
