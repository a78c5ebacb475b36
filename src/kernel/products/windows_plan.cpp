#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "kernel/products/pack.h"
#include "kernel/products/tile.h"
#include "kernel/products/windows.h"

namespace einrel::contraction {
namespace {

struct WindowsShape {
  std::int64_t rows = 0;
  std::int64_t vector = 0;
  const char* instructions = "";
};

WindowsShape kernel_shape(DType type) {
  const auto shape = [](const auto& kernels) {
    return WindowsShape{kernels.rows, kernels.vector, kernels.instructions};
  };
  return type == DType::f32 ? shape(tile_kernels<float>(Combination{}, false))
                            : shape(tile_kernels<double>(Combination{}, false));
}

std::int64_t element_size(const WindowPlan& plan) {
  return static_cast<std::int64_t>(size_of(plan.product.match.type));
}

double row_part_count(const WindowPlan& plan) {
  double count = 1;
  for (std::size_t l = 0; l < plan.part_rows.size(); ++l) {
    count *= static_cast<double>(ceil_div(plan.product.rows[l].extent, plan.part_rows[l]));
  }
  return count;
}

double column_part_count(const WindowPlan& plan) {
  return static_cast<double>(ceil_div(plan.columns, plan.part_columns));
}

double part_count(const WindowPlan& plan) {
  return static_cast<double>(plan.batch) * row_part_count(plan) * column_part_count(plan);
}

/// Elements of the block of the result: a line of rows and a panel of columns, all lines where they are rearranged, and
/// all columns of a part, too, where inner positions come in several blocks.
double block_size(const WindowPlan& plan) {
  double size = static_cast<double>(plan.part_rows.back()) * static_cast<double>(plan.tile_lanes);
  const bool several_blocks = plan.inner_block < plan.inner;
  if (!several_blocks && store_of(plan) != WindowStore::rearranged) return size;
  for (std::size_t l = 0; l + 1 < plan.part_rows.size(); ++l) size *= static_cast<double>(plan.part_rows[l]);
  return several_blocks ? size * static_cast<double>(ceil_div(plan.part_columns, plan.tile_lanes)) : size;
}

bool fits(const WindowPlan& plan, const WindowSizes& sizes) {
  const auto size = static_cast<double>(element_size(plan));
  const double image = size * image_size(plan.axes, plan.part_rows, plan.product.inner);
  const double panel = size * static_cast<double>(plan.tile_lanes * (plan.inner_block + rows_at_once));
  constexpr std::int64_t most_columns = 4096;  // each has an offset, whatever the processor
  return image <= static_cast<double>(sizes.image_bytes) && plan.part_columns <= most_columns &&
         image + panel + size * block_size(plan) <= static_cast<double>(sizes.workspace_bytes);
}

/// Cycles to wait for the rows of a tile, in all passes. Where rows lie far apart, every run of inner positions side by
/// side begins at other cache lines for each of them, which may be too many for the first-level cache.
double waiting_cycles(const WindowPlan& plan) {
  const std::size_t last = plan.axes.axes.size() - 1;
  if (plan.axes.rows.back().axis == last) return 0;
  double run = 1;
  for (std::size_t l = 0; l < plan.axes.inner.size(); ++l) {
    const ImageWalk& walk = plan.axes.inner[l];
    if (walk.axis == last && walk.stride != 0) run *= static_cast<double>(plan.product.inner[l].extent);
  }
  // Lines that nothing else needs stay even where there are somewhat too many.
  constexpr double cache_bytes = 2 * static_cast<double>(nominal_processor.first_cache);
  const double bytes =
      static_cast<double>(nominal_processor.line_bytes) + run * static_cast<double>(element_size(plan));
  const double runs = static_cast<double>(plan.tile_rows) / run;
  const bool stay = runs * static_cast<double>(plan.inner_block) * bytes < cache_bytes;
  return stay ? 0 : nominal_processor.missed_line_cycles * runs * static_cast<double>(plan.inner);
}

/// Cycles of all tiles along the last loop of the rows and one panel of columns.
double line_cycles(const WindowPlan& plan, std::int64_t vectors) {
  const std::int64_t extent = plan.product.rows.back().extent;
  const auto height = static_cast<double>(plan.tile_rows);
  const auto width = static_cast<double>(vectors);
  constexpr double at_once = nominal_processor.operations_per_cycle;
  const double step =
      std::max({height * width / at_once, (height + width) / at_once + 0.5, nominal_processor.latency_cycles});
  const auto passes = static_cast<double>(ceil_div(plan.inner, plan.inner_block));
  return static_cast<double>(ceil_div(extent, plan.tile_rows)) *
         (step * static_cast<double>(plan.inner) + waiting_cycles(plan) + passes * (30 + 1.5 * height * width));
}

double tiles_seconds(const WindowPlan& plan, const WindowsShape& shape) {
  const std::int64_t vectors = plan.tile_lanes / shape.vector;
  const std::int64_t rest = plan.columns % plan.tile_lanes;
  const std::int64_t whole = plan.columns / plan.tile_lanes;
  double cycles = static_cast<double>(whole) * line_cycles(plan, vectors);
  if (rest > 0) cycles += line_cycles(plan, rest <= shape.vector ? 1 : 2);
  const double lines = positions(plan.product.rows) / static_cast<double>(plan.product.rows.back().extent);
  return nominal_processor.cycle_seconds * cycles * lines;
}

/// Every part copies its image and packs its columns. What an element, a part or a tile takes is of the loops here.
double modelled_seconds(const WindowPlan& plan, const WindowsShape& shape) {
  const Product& product = plan.product;
  const double rows = positions(product.rows);
  const auto columns = static_cast<double>(plan.columns);
  const auto inner = static_cast<double>(plan.inner);
  const double image = image_size(plan.axes, plan.part_rows, product.inner) * row_part_count(plan);
  const double per_element = std::abs(plan.axes.axes.back().unit) == 1 ? 3.5e-10 : 1e-9;
  const PackingWay way = packing_way(product.b, product.columns, product.inner, product.match.type);
  double seconds = tiles_seconds(plan, shape);
  seconds += image * column_part_count(plan) * per_element;
  seconds += 1e-9 * columns * inner * packing_nanoseconds(way, product.match.type) * row_part_count(plan);
  const bool plain_pieces = store_of(plan) == WindowStore::plain && stretch(product.columns, output_quantity) < 8;
  seconds += (plain_pieces ? 1.2e-9 : 3e-10) * rows * columns;
  return seconds * static_cast<double>(plan.batch) + 2e-6 * part_count(plan);
}

enum class PartCount : std::uint8_t { any, even };

/// Cuts one loop or the columns in half, whichever costs least. False where nothing can be cut.
bool cut_once(WindowPlan& plan, const WindowsShape& shape, PartCount allowed) {
  std::optional<WindowPlan> best;
  const auto consider = [&](WindowPlan cut) {
    if (allowed == PartCount::even && std::fmod(part_count(cut), 2) != 0) return;
    cut.seconds = modelled_seconds(cut, shape);
    if (!best || cut.seconds < best->seconds) best = std::move(cut);
  };
  for (std::size_t l = 0; l < plan.part_rows.size(); ++l) {
    const std::int64_t unit = l + 1 == plan.part_rows.size() ? plan.tile_rows : 1;
    if (plan.part_rows[l] <= unit) continue;
    WindowPlan cut = plan;
    cut.part_rows[l] = round_up(ceil_div(plan.part_rows[l], 2), unit);
    consider(std::move(cut));
  }
  if (plan.part_columns > plan.tile_lanes) {
    WindowPlan cut = plan;
    cut.part_columns = round_up(ceil_div(plan.part_columns, 2), plan.tile_lanes);
    consider(std::move(cut));
  }
  if (!best) return false;
  plan = std::move(*best);
  return true;
}

/// Why an operand cannot be copied, or the result cannot be written; "" if they can.
std::string windows_obstacle(const Product& product) {
  const Match& match = product.match;
  if (!match.reduces) return "it reduces nothing";
  if (match.combination != Combination{} || !is_float(match.type)) return "it is no sum of a product of two floats";
  if (product.rows.empty() || product.columns.empty()) return "it has no rows or no columns";
  for (const Side* side : {&product.a, &product.b}) {
    if (packing_way(*side, {}, {}, match.type) == PackingWay::converted) return "an operand is misaligned or converted";
  }
  constexpr double most_inner = 1 << 18;  // each has an offset
  return positions(product.inner) > most_inner ? "it reduces too many positions" : "";
}

/// The plan whose tiles run along one of the rows.
std::optional<WindowPlan> plan_along(Product product, std::size_t row, const WindowSizes& sizes) {
  order_by_step(product.columns, output_quantity);
  order_by_step(product.inner, product.b.reading.quantity);
  product.rows.push_back(product.rows[row]);
  product.rows = without(std::move(product.rows), row);
  std::optional<ImageAxes> axes = find_axes(product.a, product.rows, product.inner);
  if (!axes) return std::nullopt;
  const WindowsShape shape = kernel_shape(product.match.type);
  WindowPlan plan;
  plan.axes = std::move(*axes);
  plan.batch = position_count(product.batch);
  plan.columns = position_count(product.columns);
  plan.inner = position_count(product.inner);
  const std::int64_t extent = product.rows.back().extent;
  for (const Loop& loop : product.rows) plan.part_rows.push_back(loop.extent);
  plan.tile_rows = ceil_div(extent, ceil_div(extent, shape.rows));
  plan.tile_lanes = (plan.columns > shape.vector ? 2 : 1) * shape.vector;
  plan.part_columns = plan.columns;
  plan.product = std::move(product);
  const double overlap = positions(plan.product.rows) * static_cast<double>(plan.inner);
  constexpr double least_overlap = 1.5;
  if (overlap < least_overlap * image_size(plan.axes, plan.part_rows, plan.product.inner)) return std::nullopt;
  const std::int64_t most_inner = sizes.inner_bytes / element_size(plan);
  plan.inner_block = ceil_div(plan.inner, ceil_div(plan.inner, most_inner));
  plan.seconds = modelled_seconds(plan, shape);
  while (!fits(plan, sizes)) {
    if (!cut_once(plan, shape, PartCount::any)) return std::nullopt;
  }
  // Two threads have as much to do each; more of them must not cost much.
  const double wanted = std::clamp(plan.seconds / sizes.part_seconds, 1.0, 16.0);
  const double most_seconds = 1.05 * plan.seconds;
  while (2 * part_count(plan) <= wanted) {
    WindowPlan cut = plan;
    if (!cut_once(cut, shape, PartCount::even) || (part_count(plan) >= 2 && cut.seconds > most_seconds)) break;
    plan = std::move(cut);
  }
  plan.shape = shape_of(plan.axes, plan.part_rows, plan.product.inner);
  plan.seconds = modelled_seconds(plan, shape);
  return plan;
}

}  // namespace

WindowStore store_of(const WindowPlan& plan) {
  const auto is_dense = [](const Loop& loop) { return loop.steps[output_quantity] == 1; };
  const std::vector<Loop>& rows = plan.product.rows;
  if (is_dense(rows.back())) return WindowStore::transposed;
  return std::any_of(rows.begin(), rows.end(), is_dense) ? WindowStore::rearranged : WindowStore::plain;
}

std::variant<WindowPlan, std::string> plan_windows(const Product& product, const WindowSizes& sizes) {
  if (std::string reason = windows_obstacle(product); !reason.empty()) return reason;
  std::optional<WindowPlan> best;
  for (const Product& oriented : {product, transposed(product)}) {
    for (std::size_t row = 0; row < oriented.rows.size(); ++row) {
      std::optional<WindowPlan> plan = plan_along(oriented, row, sizes);
      if (plan && (!best || plan->seconds < best->seconds)) best = std::move(plan);
    }
  }
  if (!best) return "it reads no windows that overlap";
  return std::move(*best);
}

WindowWorkspace workspace_of(const WindowPlan& plan) {
  constexpr std::int64_t line = nominal_processor.line_bytes;
  const std::int64_t size = element_size(plan);
  WindowWorkspace workspace;
  workspace.panel = round_up(plan.shape.size * size, line);
  workspace.block = workspace.panel + round_up(plan.tile_lanes * plan.inner_block * size, line);
  workspace.transposed = workspace.block + round_up(static_cast<std::int64_t>(block_size(plan)) * size, line);
  workspace.total = workspace.transposed + rows_at_once * plan.tile_lanes * size;
  return workspace;
}

std::int64_t own_bytes(const WindowPlan& plan) { return workspace_of(plan).total; }

std::int64_t parts(const WindowPlan& plan) { return static_cast<std::int64_t>(part_count(plan)); }

std::string describe(const WindowPlan& plan) {
  return fmt::format("windows {}x{} ({})", plan.tile_rows, plan.tile_lanes,
                     kernel_shape(plan.product.match.type).instructions);
}

}  // namespace einrel::contraction
