#include "kernel/products/packed_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernel/products/pack.h"
#include "kernel/products/tile.h"

namespace einrel::contraction {
namespace {

constexpr std::int64_t cache_line = nominal_processor.line_bytes;  ///< panels begin at one

/// What a plan needs to know of the tile kernels.
struct TileShape {
  std::int64_t most_rows = 0;
  std::int64_t vector = 0;
  std::array<bool, most_tile_rows> heights{};  ///< by rows - 1, whether there are kernels
  bool is_narrow = false;                      ///< there are kernels of one vector
  bool in_blocks = false;                      ///< for a matrix unit
  const char* instructions = "";
};

template <class T, class Packed>
TileShape tile_shape(const TileKernels<T, Packed>& kernels) {
  TileShape shape{kernels.rows, kernels.vector, {}, false, kernels.turned, kernels.instructions};
  for (std::size_t r = 0; r < most_tile_rows; ++r) shape.heights[r] = kernels.functions[r][1] != nullptr;
  shape.is_narrow = kernels.functions[static_cast<std::size_t>(kernels.rows - 1)][0] != nullptr;
  return shape;
}

TileShape tile_shape(const Match& match, bool pairs) {
  if (pairs) return tile_shape(*bf16_kernels(false));
  switch (match.type) {
    case DType::f32: return tile_shape(tile_kernels<float>(match.combination, false));
    case DType::f64: return tile_shape(tile_kernels<double>(match.combination, false));
    case DType::i32: return tile_shape(tile_kernels<std::int32_t>(match.combination, false));
    case DType::i64: return tile_shape(tile_kernels<std::int64_t>(match.combination, false));
    default: throw Bug("a contraction computes in a type that it refuses");
  }
}

/// Whether the processor has products for these operands as they are stored. Sums below the normal range become 0, so
/// nothing may magnify them.
bool can_pair(const Product& product) {
  const auto has_bf16 = [](const Side& side) {
    const Reading& reading = side.reading;
    return reading.dtype == DType::bf16 && side.factor == 1 && (reading.pad == 0 || reading.guards.empty());
  };
  return product.match.combination == Combination{Join::multiply, Reduce::sum} && std::abs(product.match.scale) <= 1 &&
         has_bf16(product.a) && has_bf16(product.b) && bf16_kernels(false) != nullptr;
}

std::int64_t slots_of(const PackedPlan& plan, std::int64_t positions) {
  return plan.pairs ? slots_for<BFloat16Pair>(positions) : positions;
}

std::int64_t slot_bytes(const PackedPlan& plan) { return static_cast<std::int64_t>(size_of(plan.product.match.type)); }

bool has_step(const std::vector<Loop>& loops, std::size_t quantity, std::int64_t step) {
  return std::any_of(loops.begin(), loops.end(), [&](const Loop& loop) { return loop.steps[quantity] == step; });
}

/// Puts the loops of each role in the order in which their positions are numbered: lines of panels so that the result
/// (columns) or the operand is contiguous, inner positions so that `leading` is.
void order_loops(Product& product, const Side& leading) {
  const std::size_t a = product.a.reading.quantity;
  const std::size_t b = product.b.reading.quantity;
  order_by_step(product.rows, has_step(product.rows, a, 1) ? a : output_quantity);
  order_by_step(product.columns, has_step(product.columns, output_quantity, 1) ? output_quantity : b);
  order_by_step(product.inner, leading.reading.quantity);
  order_by_step(product.batch, output_quantity);
}

/// How far apart the positions of loops lie in a quantity, where all are equally far from the next one.
std::optional<std::int64_t> even_step(const std::vector<Loop>& loops, std::size_t quantity) {
  const std::int64_t step = loops.empty() ? 0 : loops.back().steps[quantity];
  std::int64_t positions = 1;
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    if (loop->steps[quantity] != step * positions) return std::nullopt;
    positions *= loop->extent;
  }
  return step;
}

/// Whether the lines of so many rows find room in the places of the first-level cache that they may be in: else they
/// evict one another while a tile is computed.
bool have_room(std::int64_t rows, std::int64_t row_bytes, std::int64_t step_bytes) {
  constexpr std::int64_t page_bytes = nominal_processor.page_bytes;
  step_bytes = std::abs(step_bytes);
  if (step_bytes > 2 * page_bytes) step_bytes = step_bytes % page_bytes + page_bytes;
  constexpr std::int64_t places = page_bytes / cache_line;
  std::array<std::int64_t, places> held{};
  std::int64_t lines = 0;
  std::int64_t next = 0;  // neighbouring rows may share a line
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t begin = r * step_bytes;
    next = std::max(next, begin / cache_line);
    for (; next * cache_line < begin + row_bytes; ++next, ++lines) ++held[static_cast<std::size_t>(next % places)];
  }
  constexpr std::int64_t few = nominal_processor.first_cache_ways - 1;  // B needs one
  return *std::max_element(held.begin(), held.end()) <= std::max(few, ceil_div(lines, places) + 1);
}

/// Whether tiles may read rows of A where they lie, and how far apart.
template <class T>
std::optional<std::int64_t> step_in_place(const PackedPlan& plan, const TileKernels<T>& kernels) {
  const Side& a = plan.product.a;
  const Reading& reading = a.reading;
  const DType type = plan.product.match.type;
  const bool is_plain = reading.guards.empty() && reading.dtype == type && a.factor == 1;
  const bool by_line = packing_way(a, plan.product.rows, plan.product.inner, type) == PackingWay::inner;
  const bool has_kernel = kernels.in_place[static_cast<std::size_t>(plan.tile_rows - 1)][1] != nullptr;
  if (!is_plain || !by_line || !has_kernel) return std::nullopt;
  const std::optional<std::int64_t> step = even_step(plan.product.rows, reading.quantity);
  const bool in_one_piece = stretch(plan.product.inner, reading.quantity) == plan.inner;
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  const bool fits = step && in_one_piece && have_room(plan.tile_rows, plan.inner_block * size, *step * size);
  return fits ? step : std::nullopt;
}

std::optional<std::int64_t> step_in_place(const PackedPlan& plan) {
  const Match& match = plan.product.match;
  if (plan.pairs || !is_float(match.type)) return std::nullopt;
  return match.type == DType::f32 ? step_in_place(plan, tile_kernels<float>(match.combination, false))
                                  : step_in_place(plan, tile_kernels<double>(match.combination, false));
}

/// Cycles of one vector operation of a combination: a fused one, or several.
double vector_cycles(const Match& match) {
  const Combination c = match.combination;
  const auto operations = [&] {
    if (c.join == Join::multiply && is_integer(match.type)) return match.type == DType::i32 ? 3 : 8;
    if (c.join == Join::multiply && c.reduce == Reduce::sum) return 1;
    return c.join == Join::absolute_difference ? 3 : 2;
  };
  return operations() / nominal_processor.operations_per_cycle;
}

/// Cycles of one tile at one slot.
double slot_cycles(const PackedPlan& plan, const TileShape& shape, double height, double width) {
  // Where the columns are too large for the first-level cache, a line of them comes from the second for each tile.
  const std::int64_t bytes = plan.columns * slots_of(plan, plan.inner_block) * slot_bytes(plan);
  const double coming = bytes > nominal_processor.first_cache ? nominal_processor.fetched_line_cycles * width : 0;
  // A matrix unit takes as many cycles for a block as it has slots.
  if (shape.in_blocks) return height / static_cast<double>(block_side) * width + coming;
  const double loads = (height + width) / nominal_processor.operations_per_cycle;
  const double latency = (plan.pairs ? 1.5 : 1) * nominal_processor.latency_cycles;
  return std::max({height * width * vector_cycles(plan.product.match), loads, latency}) + coming;
}

/// Cycles of one tile for all inner positions.
double tile_cycles(const PackedPlan& plan, const TileShape& shape, std::int64_t rows, std::int64_t vectors) {
  const auto height = static_cast<double>(rows);
  const auto width = static_cast<double>(vectors);
  const auto passes = static_cast<double>(ceil_div(plan.inner, plan.inner_block));
  const double set_up = shape.in_blocks ? 150 : 25;
  return slot_cycles(plan, shape, height, width) * static_cast<double>(slots_of(plan, plan.inner)) +
         passes * (set_up + 1.5 * height * width);
}

/// Cycles of all tiles that begin at one row.
double row_of_tiles_cycles(const PackedPlan& plan, const TileShape& shape, std::int64_t rows) {
  const std::int64_t vectors = plan.tile_lanes / shape.vector;
  const std::int64_t rest = plan.columns % plan.tile_lanes;
  const std::int64_t whole = plan.columns / plan.tile_lanes;
  const double full = static_cast<double>(whole) * tile_cycles(plan, shape, rows, vectors);
  if (rest == 0) return full;
  return full + tile_cycles(plan, shape, rows, shape.is_narrow ? ceil_div(rest, shape.vector) : vectors);
}

/// Cycles of all tiles of one product, if its tiles are so high.
double all_tiles_cycles(const PackedPlan& plan, const TileShape& shape, std::int64_t rows) {
  const std::int64_t rest = plan.rows % rows;
  const std::int64_t whole = plan.rows / rows;
  const double full = static_cast<double>(whole) * row_of_tiles_cycles(plan, shape, rows);
  if (rest == 0) return full;
  const bool has_kernel = shape.heights[static_cast<std::size_t>(rest - 1)];
  return full + row_of_tiles_cycles(plan, shape, has_kernel ? rest : rows);
}

/// The height of fewest cycles, and the least of several.
std::int64_t best_tile_rows(const PackedPlan& plan, const TileShape& shape) {
  std::int64_t best = shape.most_rows;
  for (std::int64_t rows = best - 1; rows >= 1; --rows) {
    if (!shape.heights[static_cast<std::size_t>(rows - 1)]) continue;
    if (all_tiles_cycles(plan, shape, rows) <= all_tiles_cycles(plan, shape, best)) best = rows;
  }
  return best;
}

double modelled_seconds(const PackedPlan& plan, const TileShape& shape) {
  const Product& product = plan.product;
  const DType type = product.match.type;
  const auto m = static_cast<double>(plan.rows);
  const auto n = static_cast<double>(plan.columns);
  const auto k = static_cast<double>(plan.inner);
  const bool shares = plan.shared_columns > 0;
  const double row_parts = shares ? 1 : static_cast<double>(ceil_div(plan.rows, plan.part_rows));
  const double column_parts =
      static_cast<double>(ceil_div(plan.columns, shares ? plan.shared_columns : plan.part_columns));
  const PackingWay a = packing_way(product.a, product.rows, product.inner, type);
  const PackingWay b = packing_way(product.b, product.columns, product.inner, type);
  const auto packing = [&](const Side& side, PackingWay way, double elements) {
    const double bytes = elements * static_cast<double>(size_of(side.reading.dtype));
    // Halves of pairs are put one by one where some may lie outside of the operand.
    const double of_guards = plan.pairs && !side.reading.guards.empty() ? 0.8 : 0;
    return 1e-9 * elements * (packing_nanoseconds(way, type) + of_guards) + transfer_seconds(bytes);
  };
  const double passes = static_cast<double>(ceil_div(plan.inner, plan.inner_block));
  double seconds = nominal_processor.cycle_seconds * all_tiles_cycles(plan, shape, plan.tile_rows);
  if (shape.in_blocks && a != PackingWay::inner) seconds += 1.2e-10 * m * k * column_parts;  // turned after packing
  const double reading = transfer_seconds(m * k * static_cast<double>(size_of(product.a.reading.dtype)));
  seconds += (plan.rows_in_place ? reading : packing(product.a, a, m * k)) * column_parts;
  seconds += packing(product.b, b, n * k) * row_parts;
  seconds += 2 * passes * transfer_seconds(m * n * static_cast<double>(size_of(product.result)));
  const std::int64_t together = stretch(product.columns, output_quantity);
  const bool in_pieces = together < plan.columns && together % plan.tile_lanes != 0 && together < 4 * plan.tile_lanes;
  if (plan.through_block) {
    seconds += 1e-9 * m * n;
  } else if (in_pieces) {
    seconds += 4e-10 * passes * m * n;
  }
  seconds += 3e-7 * row_parts * column_parts;
  return seconds * static_cast<double>(plan.batch) + 1e-6 * static_cast<double>(parts(plan));
}

/// Rows of tiles that the busiest of some threads computes, when they take parts of so many in turn.
std::int64_t most_tiles(std::int64_t tiles, std::int64_t part, std::int64_t threads) {
  const std::int64_t whole = (tiles - 1) / part;  // parts but for the last one, which may be shorter
  return std::max(ceil_div(whole, threads) * part, whole / threads * part + tiles - whole * part);
}

/// How many rows of tiles a part has, at most `most`: so many that few threads have about as much to do each. How many
/// threads there are is not known, since bits may not depend on it.
std::int64_t part_tiles(std::int64_t tiles, std::int64_t most) {
  const auto cost = [&](std::int64_t part) {
    constexpr double reading = 0.2;  // B once for each part, in rows of tiles
    std::int64_t sum = 0;
    for (const std::int64_t threads : {1, 2, 4}) sum += threads * most_tiles(tiles, part, threads);
    return static_cast<double>(sum) * (1 + reading / static_cast<double>(part));
  };
  std::int64_t best = most;
  for (std::int64_t part = most - 1; part >= std::max<std::int64_t>(1, most / 2); --part) {
    if (cost(part) < cost(best)) best = part;
  }
  return best;
}

/// Parts of a few rows of tiles each, for which B is packed once. False where that cannot be done or does not pay: of a
/// wide product parts are of columns instead, so that cores whose caches are far apart exchange nothing.
bool share_columns(PackedPlan& plan, const BlockSizes& sizes) {
  const std::int64_t tiles = ceil_div(plan.rows, plan.tile_rows);
  const bool is_wide = plan.columns > 4 * plan.rows && plan.rows <= sizes.rows / 2;
  if (plan.batch > 1 || plan.through_block || plan.product.one_stage) return false;
  if (plan.columns < 3 * plan.tile_lanes || tiles < 2 * sizes.shared_tiles || is_wide) return false;
  const std::int64_t line = slots(plan) * slot_bytes(plan) + static_cast<std::int64_t>(sizeof(Specials));
  const std::int64_t most = (sizes.shared_bytes - cache_line) / line / plan.tile_lanes * plan.tile_lanes;
  constexpr std::int64_t most_blocks = 10000;  // each is a stage or two
  if (ceil_div(plan.inner, plan.inner_block) > most_blocks / ceil_div(plan.columns, most)) return false;
  plan.shared_columns = round_up(ceil_div(plan.columns, ceil_div(plan.columns, most)), plan.tile_lanes);
  plan.part_rows = part_tiles(tiles, sizes.shared_tiles) * plan.tile_rows;
  return true;
}

/// Parts of columns, for each of which all rows are read where they lie: threads share nothing that they write. Only
/// where that gives about as many parts as sharing columns would, since rows are not cut: each part of them would pack
/// the same columns. And only where the result is in a cache, to which it goes in short stretches.
bool cut_columns(PackedPlan& plan, const BlockSizes& sizes, double seconds) {
  constexpr std::int64_t least_columns = 96;
  constexpr std::int64_t most_result = 2 * nominal_processor.second_cache;
  const bool is_short = seconds < 2 * sizes.in_place_seconds;
  const bool is_large = plan.rows * plan.columns * slot_bytes(plan) > most_result;
  if (plan.batch > 1 || plan.through_block || is_short || is_large) return false;
  const std::int64_t several = seconds > 2 * sizes.part_seconds ? 4 : 2;  // columns of shorter ones are not shared
  const std::int64_t wanted = std::max(several, parts_for(seconds, sizes.part_seconds));
  const std::int64_t most_parts = plan.columns / least_columns;
  if (most_parts < wanted) return false;
  const std::int64_t least_parts = round_up(ceil_div(plan.columns, sizes.columns), 2);
  const std::int64_t column_parts = std::min(most_parts, std::max(wanted, least_parts));
  const std::int64_t tiles = ceil_div(plan.columns, plan.tile_lanes);
  const std::int64_t most = ceil_div(tiles, column_parts);
  std::int64_t part = most;
  for (std::int64_t fewer = most - 1; fewer >= ceil_div(most, 2); --fewer) {
    if (most_tiles(tiles, fewer, 2) < most_tiles(tiles, part, 2)) part = fewer;
  }
  constexpr std::int64_t many_rows = 512;  // of which parts are more even
  const bool is_uneven = 20 * most_tiles(tiles, part, 2) > 11 * tiles;
  if (is_uneven && plan.rows >= many_rows) return false;
  plan.part_columns = part * plan.tile_lanes;
  return true;
}

/// Cuts the result into parts: enough of them for several threads, where there is enough to do, but not so many that
/// packing the same lines again and again costs much.
void cut_into_parts(PackedPlan& plan, const BlockSizes& sizes, double seconds) {
  if (plan.rows_in_place && cut_columns(plan, sizes, seconds)) return;
  if (seconds > 2 * sizes.part_seconds && share_columns(plan, sizes)) return;
  const std::int64_t wanted = parts_for(seconds, plan.rows_in_place ? sizes.in_place_seconds : sizes.part_seconds);
  plan.part_batch = ceil_div(plan.batch, std::min(plan.batch, wanted));
  const std::int64_t most_rows = round_up(std::max(sizes.rows, plan.tile_rows), plan.tile_rows);
  // A block of the result, and packed rows of A beside it, must fit into the workspace.
  const std::int64_t most_block =
      most_workspace_bytes / 4 / static_cast<std::int64_t>(size_of(plan.product.match.type));
  plan.part_rows = plan.rows;
  plan.part_columns = plan.columns;
  const auto too_large = [&] {
    return plan.part_rows > most_rows || (plan.through_block && plan.part_rows * plan.part_columns > most_block);
  };
  for (;;) {
    const bool by_rows = plan.part_rows > most_rows || plan.part_rows >= plan.part_columns;
    const std::int64_t side = by_rows ? plan.part_rows : plan.part_columns;
    const std::int64_t unit = by_rows ? plan.tile_rows : plan.tile_lanes;
    const std::int64_t least = parts(plan) < 2 ? 256 : parts(plan) < 4 ? 512 : 1024;
    const bool worthwhile = parts(plan) < std::min<std::int64_t>(wanted, 16) && side / 2 >= least;
    if (side <= unit || !(too_large() || worthwhile)) break;
    (by_rows ? plan.part_rows : plan.part_columns) = round_up(ceil_div(side, 2), unit);
  }
}

/// Where the operands lie side by side along two different inner loops, cuts the outer one, so that a short piece of it
/// is innermost: then both have neighbours to transpose. Returns how many inner positions a block of a whole number of
/// neighbours has; 1 where nothing was cut.
std::int64_t interleave(std::vector<Loop>& inner, std::size_t other, std::int64_t most_inner) {
  constexpr std::int64_t least = 6;
  constexpr std::int64_t most = 16;
  for (std::size_t l = 0; l + 1 < inner.size(); ++l) {
    if (inner[l].steps[other] != 1) continue;
    std::int64_t length = most;
    while (length >= least && inner[l].extent % length != 0) --length;
    if (length < least) return 1;
    const std::int64_t neighbours = inner.back().extent;
    Loop piece = inner[l];
    piece.extent = length;
    inner[l].extent /= length;
    for (std::int64_t& step : inner[l].steps) step *= length;
    inner.push_back(std::move(piece));
    return length * (length * neighbours <= most_inner ? neighbours : most);
  }
  return 1;
}

PackedPlan plan_oriented(Product product, const Side& leading, const BlockSizes& sizes) {
  order_loops(product, leading);
  const bool leads_a = leading.operand == product.a.operand;
  const bool pairs = can_pair(product);
  const TileShape shape = tile_shape(product.match, pairs);
  const auto element = static_cast<std::int64_t>(size_of(pairs ? DType::bf16 : product.match.type));
  // A matrix unit's tiles have twice as many rows.
  const std::int64_t most_inner = sizes.inner_bytes / element / (shape.in_blocks ? 2 : 1);
  const std::int64_t unit =
      interleave(product.inner, (leads_a ? product.b : product.a).reading.quantity, most_inner + most_inner / 3);
  PackedPlan plan;
  plan.pairs = pairs;
  plan.batch = position_count(product.batch);
  plan.rows = position_count(product.rows);
  plan.columns = position_count(product.columns);
  plan.inner = position_count(product.inner);
  plan.product = std::move(product);
  const std::int64_t together = stretch(plan.product.columns, output_quantity);
  const bool halves = shape.is_narrow && together % shape.vector == 0 && together < 4 * shape.vector;
  plan.tile_lanes = halves && together % (2 * shape.vector) != 0 ? shape.vector : 2 * shape.vector;
  plan.inner_block =
      unit > 1 ? std::max(unit, most_inner / unit * unit) : ceil_div(plan.inner, ceil_div(plan.inner, most_inner));
  plan.tile_rows = best_tile_rows(plan, shape);
  plan.rows_in_place = step_in_place(plan);
  // Tiles go where they belong in stretches; short ones are slow, and better stored once than in every pass.
  constexpr std::int64_t least_stretch = 8;
  const bool contiguous = together >= std::min(plan.columns, least_stretch);
  plan.through_block = plan.product.result != plan.product.match.type || !plan.product.result_aligned || !contiguous;
  plan.part_batch = plan.batch;
  plan.part_rows = plan.rows;
  plan.part_columns = plan.columns;
  cut_into_parts(plan, sizes, modelled_seconds(plan, shape));
  // Of columns that are short, since there are few inner positions, there may be more.
  const std::int64_t most_shared = sizes.shared_block * sizes.inner_bytes / (slots(plan) * slot_bytes(plan));
  const std::int64_t most_columns = plan.shared_columns > 0 ? most_shared : sizes.columns;
  const std::int64_t blocks = ceil_div(plan.part_columns, std::max(most_columns, plan.tile_lanes));
  plan.column_block = round_up(ceil_div(plan.part_columns, blocks), plan.tile_lanes);
  const bool has_next = plan.shared_columns > 0 && plan.inner > plan.inner_block;
  if (has_next && 2 * shared_buffer_bytes(plan) <= sizes.shared_bytes) plan.shared_buffers = 2;
  plan.seconds = modelled_seconds(plan, shape);
  return plan;
}

}  // namespace

bool is_choosy(const PackedPlan& plan) {
  const Combination c = plan.product.match.combination;
  return plan.pairs || (is_float(plan.product.match.type) &&
                        (c.reduce != Reduce::sum || c.join == Join::maximum || c.join == Join::minimum));
}

std::int64_t parts(const PackedPlan& plan) {
  return ceil_div(plan.batch, plan.part_batch) * ceil_div(plan.rows, plan.part_rows) *
         ceil_div(plan.columns, plan.part_columns);
}

std::int64_t slots(const PackedPlan& plan) { return slots_of(plan, plan.inner_block); }

std::int64_t own_bytes(const PackedPlan& plan) { return workspace_of(plan).total; }

std::int64_t shared_buffer_bytes(const PackedPlan& plan) {
  if (plan.shared_columns == 0) return 0;
  const std::int64_t blocks = ceil_div(plan.shared_columns, plan.column_block);
  const std::int64_t specials = blocks * static_cast<std::int64_t>(sizeof(Specials));
  return round_up(plan.shared_columns * slots(plan) * slot_bytes(plan) + specials, cache_line);
}

std::int64_t shared_bytes(const PackedPlan& plan) { return plan.shared_buffers * shared_buffer_bytes(plan); }

PackedPlan plan_packed(const Product& product, const BlockSizes& sizes) {
  const Product other = transposed(product);
  PackedPlan best = plan_oriented(product, product.a, sizes);
  for (PackedPlan& plan : std::array{plan_oriented(product, product.b, sizes), plan_oriented(other, other.a, sizes),
                                     plan_oriented(other, other.b, sizes)}) {
    if (plan.seconds < best.seconds) best = std::move(plan);
  }
  return best;
}

PackedWorkspace workspace_of(const PackedPlan& plan) {
  const std::int64_t size = slot_bytes(plan);
  PackedWorkspace workspace;
  const std::int64_t rows = round_up(std::min(plan.rows, plan.part_rows), plan.tile_rows);
  const std::int64_t packed = plan.shared_columns > 0 ? 0 : std::min(plan.part_columns, plan.column_block);
  const std::int64_t columns = round_up(packed, plan.tile_lanes);
  if (!plan.rows_in_place) workspace.b = round_up(rows * slots(plan) * size, cache_line) + cache_line;
  workspace.block = workspace.b + round_up(columns * slots(plan) * size, cache_line) + cache_line;
  const std::int64_t block = plan.through_block ? plan.part_rows * plan.part_columns : plan.tile_rows * plan.tile_lanes;
  workspace.total = workspace.block + round_up(block * size, cache_line);
  invariant(workspace.total <= most_workspace_bytes, "a packed product needs more workspace than a kernel may have");
  return workspace;
}

std::string describe(const PackedPlan& plan) {
  return fmt::format("packed {}x{} ({})", plan.tile_rows, plan.tile_lanes,
                     tile_shape(plan.product.match, plan.pairs).instructions);
}

}  // namespace einrel::contraction
