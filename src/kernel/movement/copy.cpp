#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include "kernel/cancel.h"
#include "kernel/elementwise/block_ops.h"
#include "kernel/elementwise/streaming.h"
#include "kernel/kernels.h"
#include "kernel/products/pack_ops.h"
#include "machine/seconds.h"

namespace einrel {
namespace {

/// Tiles that are transposed at a time: so many rows, which are read one cache line or more of each, and so many
/// columns.
constexpr std::int64_t tile_rows = 32;
constexpr std::int64_t tile_columns = 32;
/// Where all columns are so few, they are one tile.
constexpr std::int64_t most_columns = 64;

/// One loop of a copy: steps in elements.
struct CopyLoop {
  std::int64_t extent = 1;
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// For every outer position, a matrix: columns are contiguous in the result; rows are contiguous in the operand where
/// columns are not (a transpose), else any further loop.
struct CopyPlan {
  std::size_t operand = 0;
  std::size_t element_size = 4;
  CopyLoop row;
  CopyLoop column;
  std::vector<Loop> outer;
  std::vector<std::int64_t> bases;
  std::size_t from_quantity = 0;
  std::int64_t band = 1;   ///< rows, or in a transpose columns, that are copied together
  std::int64_t bands = 1;  ///< that the rows or columns are cut into, for each outer position
  bool aligned = true;     ///< every element lies at a multiple of its size
  bool streams = false;
  bool normalises = false;  ///< bools: any byte but 0 becomes 1
  std::int64_t parts = 1;
  double seconds = 0;
  bool is_transpose() const { return column.from != 1 && column.extent > 1; }
  const CopyLoop& banded() const { return is_transpose() ? column : row; }
  std::int64_t units() const { return position_count(outer) * bands; }
};

CopyLoop copy_loop(const Loop& loop, std::size_t from_quantity) {
  return {loop.extent, loop.steps[from_quantity], loop.steps[output_quantity]};
}

/// Takes a loop out of those that are left.
std::optional<CopyLoop> take(std::vector<Loop>& loops, std::optional<std::size_t> which, std::size_t from_quantity) {
  if (!which) return std::nullopt;
  const CopyLoop taken = copy_loop(loops[*which], from_quantity);
  loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(*which));
  return taken;
}

std::optional<std::size_t> contiguous_in(const std::vector<Loop>& loops, std::size_t quantity) {
  const auto found =
      std::find_if(loops.begin(), loops.end(), [quantity](const Loop& loop) { return loop.steps[quantity] == 1; });
  return found == loops.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - loops.begin()));
}

std::optional<std::size_t> longest(const std::vector<Loop>& loops) {
  const auto found =
      std::max_element(loops.begin(), loops.end(), [](const Loop& a, const Loop& b) { return a.extent < b.extent; });
  return found == loops.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - loops.begin()));
}

/// What an element or a byte takes is of the loops here.
void cut(CopyPlan& plan) {
  const auto elements = static_cast<double>(position_count(plan.outer)) * static_cast<double>(plan.row.extent) *
                        static_cast<double>(plan.column.extent);
  const auto bytes = elements * static_cast<double>(plan.element_size);
  plan.seconds = 1e-9 * (plan.is_transpose() ? std::max(0.4 * elements, 0.12 * bytes)
                                             : 1e9 * copied_byte_seconds * bytes +
                                                   5 * elements / static_cast<double>(plan.column.extent));
  plan.band = plan.is_transpose() && plan.column.extent <= most_columns ? plan.column.extent : tile_columns;
  plan.bands = (plan.banded().extent + plan.band - 1) / plan.band;
  plan.parts = std::min(parts_worth(plan.seconds, looped_part_seconds), plan.units());
}

void copy_row(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void copy_bools(std::byte* to, const std::byte* from, std::size_t bytes) {
  const ElementSpan span{0, 0, bytes};
  load_block(DType::boolean, from, &span, 1, 1, reinterpret_cast<Truth*>(to));
}

/// to[r * columns + c] = the element r of line c.
template <class T>
void transpose_tile(const CopyPlan& plan, const std::array<const std::byte*, most_columns>& lines, std::int64_t columns,
                    std::int64_t rows, T* to) {
  if constexpr (sizeof(T) >= 4) {
    if (plan.aligned) {
      std::array<const T*, most_columns> typed;
      std::transform(lines.begin(), lines.begin() + columns, typed.begin(),
                     [](const std::byte* line) { return reinterpret_cast<const T*>(line); });
      return contraction::transpose_lines(typed.data(), columns, rows, to, columns);
    }
  }
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      std::memcpy(to + r * columns + c, lines[static_cast<std::size_t>(c)] + r * size, sizeof(T));
    }
  }
}

/// Brings what the next tile reads into the cache: the processor follows only a few lines by itself.
void look_ahead(const std::array<const std::byte*, most_columns>& lines, std::int64_t columns, std::int64_t bytes) {
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t at = bytes; at < 2 * bytes; at += nominal_processor.line_bytes) {
      __builtin_prefetch(lines[static_cast<std::size_t>(c)] + at);
    }
  }
}

/// All rows of a band of columns, tile after tile.
template <class T>
void transpose_band(const CopyPlan& plan, std::int64_t columns, const std::byte* from, std::byte* to) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  alignas(64) std::array<T, static_cast<std::size_t>(tile_rows * most_columns)> tile;
  std::array<const std::byte*, most_columns> lines;
  for (std::int64_t c = 0; c < columns; ++c) {
    lines[static_cast<std::size_t>(c)] = from + c * plan.column.from * size;
  }
  const std::int64_t row_bytes = columns * size;
  for (std::int64_t begin = 0; begin < plan.row.extent; begin += tile_rows) {
    const std::int64_t rows = std::min(tile_rows, plan.row.extent - begin);
    look_ahead(lines, columns, rows * size);
    transpose_tile(plan, lines, columns, rows, tile.data());
    std::byte* const target = to + begin * plan.row.to * size;
    const auto* const transposed = reinterpret_cast<const std::byte*>(tile.data());
    if (plan.row.to == columns) {
      std::memcpy(target, transposed, static_cast<std::size_t>(rows * row_bytes));
    }
    for (std::int64_t r = 0; r < rows && plan.row.to != columns; ++r) {
      const auto copy = plan.streams ? stream_copy : copy_row;
      copy(target + r * plan.row.to * size, transposed + r * row_bytes, static_cast<std::size_t>(row_bytes));
    }
    for (std::int64_t c = 0; c < columns; ++c) lines[static_cast<std::size_t>(c)] += rows * size;
  }
}

/// The rows or columns [begin, begin + count).
void copy_band(const CopyPlan& plan, std::int64_t begin, std::int64_t count, const std::byte* from, std::byte* to) {
  const auto size = static_cast<std::int64_t>(plan.element_size);
  if (plan.is_transpose()) {
    from += begin * plan.column.from * size;
    to += begin * size;
    switch (plan.element_size) {
      case 2: return transpose_band<std::int16_t>(plan, count, from, to);
      case 4: return transpose_band<std::int32_t>(plan, count, from, to);
      default: return transpose_band<std::int64_t>(plan, count, from, to);
    }
  }
  const auto bytes = static_cast<std::size_t>(plan.column.extent * size);
  const auto copy = plan.streams ? stream_copy : plan.normalises ? copy_bools : copy_row;
  for (std::int64_t r = begin; r < begin + count; ++r) {
    copy(to + r * plan.row.to * size, from + r * plan.row.from * size, bytes);
  }
}

void copy_part(const CopyPlan& plan, const Arrays& arrays, std::int64_t part) {
  const std::int64_t begin = plan.units() * part / plan.parts;
  const std::int64_t end = plan.units() * (part + 1) / plan.parts;
  const auto size = static_cast<std::int64_t>(plan.element_size);
  Odometer outer(plan.outer, plan.bases);
  outer.seek(begin / plan.bands);
  for (std::int64_t unit = begin; unit < end; ++unit) {
    throw_if_cancelled();
    const std::int64_t first = unit % plan.bands * plan.band;
    copy_band(plan, first, std::min(plan.band, plan.banded().extent - first),
              arrays.operands[plan.operand] + outer.quantities()[plan.from_quantity] * size,
              arrays.result + outer.quantities()[output_quantity] * size);
    if (unit % plan.bands == plan.bands - 1) outer.advance();
  }
  if (plan.streams) finish_streaming();
}

/// Whether all rows of tiles, or runs, are whole cache lines of a result that stays in no cache.
bool can_stream(const KernelSpec& spec, const CopyPlan& plan) {
  constexpr std::int64_t line = nominal_processor.line_bytes;
  const auto size = static_cast<std::int64_t>(plan.element_size);
  const auto is_whole = [&](std::int64_t elements) { return elements * size % line == 0; };
  return spec.large_result && !plan.normalises && is_whole(plan.column.extent) && is_whole(plan.row.to) &&
         std::all_of(plan.outer.begin(), plan.outer.end(),
                     [&](const Loop& loop) { return is_whole(loop.steps[output_quantity]); });
}

std::variant<Offer, Refusal> offer_to_copy(const KernelSpec& spec, const LoopNest& nest) {
  const std::vector<ScalarStep>& steps = spec.einsum.body.steps;
  if (spec.einsum.reducer || steps.size() != 1 || !std::holds_alternative<OperandValue>(steps[0].op)) {
    return Refusal{"it computes something"};
  }
  CopyPlan plan;
  plan.operand = std::get<OperandValue>(steps[0].op).operand;
  const Reading& reading = nest.readings[plan.operand];
  if (reading.dtype != spec.result.dtype) return Refusal{"it changes the dtype"};
  if (!reading.guards.empty()) return Refusal{"it pads"};
  plan.element_size = size_of(reading.dtype);
  plan.normalises = reading.dtype == DType::boolean;
  plan.from_quantity = reading.quantity;
  plan.bases = nest.bases;
  plan.outer = nest.loops;
  const auto column = take(plan.outer, contiguous_in(plan.outer, output_quantity), reading.quantity);
  if (!column && !plan.outer.empty()) return Refusal{"nothing is contiguous in the result"};
  plan.column = column.value_or(CopyLoop{1, 1, 1});
  if (plan.is_transpose()) {
    const auto row = take(plan.outer, contiguous_in(plan.outer, reading.quantity), reading.quantity);
    if (!row) return Refusal{"nothing is contiguous in the operand"};
    plan.row = *row;
    if (plan.normalises) return Refusal{"bools are transposed as they are normalised"};
  } else {
    plan.row = take(plan.outer, longest(plan.outer), reading.quantity).value_or(CopyLoop{});
  }
  plan.aligned = reading.aligned;
  plan.streams = can_stream(spec, plan);
  cut(plan);
  Offer offer;
  offer.seconds = plan.seconds;
  offer.path = plan.is_transpose() ? fmt::format("tiles of {} x {}", tile_rows, plan.band)
                                   : fmt::format("runs of {} elements", plan.column.extent);
  offer.prepare = [plan = std::make_shared<const CopyPlan>(std::move(plan))] {
    PreparedKernel kernel;
    kernel.stages.push_back(
        {plan->parts, [plan](const Arrays& arrays, Workspace, std::int64_t part) { copy_part(*plan, arrays, part); }});
    return kernel;
  };
  return offer;
}

}  // namespace

KernelInfo copy_kernel() {
  return {"copy", "one tensor in another order or layout: transposes, chunks cut out and put together", "own loops",
          offer_to_copy};
}

}  // namespace einrel
