#include "kernel/cpu/copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

namespace einrel {
namespace {

/// Squares of this many elements each way: rows of one or two cache lines on both sides.
constexpr std::int64_t square = 32;

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
  std::int64_t bands = 1;  ///< that the rows are cut into, for each outer position
  std::int64_t parts = 1;
  double seconds = 0;
  bool is_transpose() const { return column.from != 1 && column.extent > 1; }
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

void cut(CopyPlan& plan) {
  const auto elements = static_cast<double>(position_count(plan.outer)) * static_cast<double>(plan.row.extent) *
                        static_cast<double>(plan.column.extent);
  const auto bytes = elements * static_cast<double>(plan.element_size);
  plan.seconds = 1e-9 * (plan.is_transpose() ? std::max(0.9 * elements, 0.2 * bytes)
                                             : 0.14 * bytes + 5 * elements / static_cast<double>(plan.column.extent));
  constexpr double least_seconds = 1e-4;
  constexpr double most_parts = 64;
  plan.bands = (plan.row.extent + square - 1) / square;
  plan.parts =
      std::min(static_cast<std::int64_t>(std::clamp(plan.seconds / least_seconds, 1.0, most_parts)), plan.units());
}

template <std::size_t size>
void move_elements(const CopyLoop& row, const CopyLoop& column, const std::byte* from, std::byte* to) {
  constexpr auto bytes = static_cast<std::int64_t>(size);
  for (std::int64_t r = 0; r < row.extent; ++r) {
    const std::byte* const line = from + r * row.from * bytes;
    std::byte* const target = to + r * row.to * bytes;
    for (std::int64_t c = 0; c < column.extent; ++c) {
      std::memcpy(target + c * bytes, line + c * column.from * bytes, size);
    }
  }
}

template <std::size_t size>
void transpose_band(const CopyLoop& band, const CopyLoop& column, const std::byte* from, std::byte* to) {
  constexpr auto bytes = static_cast<std::int64_t>(size);
  for (std::int64_t begin = 0; begin < column.extent; begin += square) {
    const CopyLoop piece{std::min(square, column.extent - begin), column.from, 1};
    move_elements<size>(band, piece, from + begin * column.from * bytes, to + begin * bytes);
  }
}

void copy_band(const CopyPlan& plan, const CopyLoop& band, const std::byte* from, std::byte* to) {
  if (plan.is_transpose()) {
    switch (plan.element_size) {
      case 2: return transpose_band<2>(band, plan.column, from, to);
      case 4: return transpose_band<4>(band, plan.column, from, to);
      default: return transpose_band<8>(band, plan.column, from, to);
    }
  }
  const auto size = static_cast<std::int64_t>(plan.element_size);
  const auto bytes = static_cast<std::size_t>(plan.column.extent * size);
  for (std::int64_t r = 0; r < band.extent; ++r) {
    std::memcpy(to + r * band.to * size, from + r * band.from * size, bytes);
  }
}

void copy_part(const CopyPlan& plan, const Arrays& arrays, std::int64_t part) {
  const std::int64_t begin = plan.units() * part / plan.parts;
  const std::int64_t end = plan.units() * (part + 1) / plan.parts;
  const auto size = static_cast<std::int64_t>(plan.element_size);
  Odometer outer(plan.outer, plan.bases);
  outer.seek(begin / plan.bands);
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t first_row = unit % plan.bands * square;
    const CopyLoop band{std::min(square, plan.row.extent - first_row), plan.row.from, plan.row.to};
    const std::int64_t from = outer.quantities()[plan.from_quantity] + first_row * plan.row.from;
    const std::int64_t to = outer.quantities()[output_quantity] + first_row * plan.row.to;
    copy_band(plan, band, arrays.operands[plan.operand] + from * size, arrays.result + to * size);
    if (unit % plan.bands == plan.bands - 1) outer.advance();
  }
}

std::variant<Offer, Refusal> offer(const KernelSpec& spec, const LoopNest& nest) {
  const std::vector<ScalarStep>& steps = spec.einsum.body.steps;
  if (spec.einsum.reducer || steps.size() != 1 || !std::holds_alternative<OperandValue>(steps[0].op)) {
    return Refusal{"it computes something"};
  }
  CopyPlan plan;
  plan.operand = std::get<OperandValue>(steps[0].op).operand;
  const Reading& reading = nest.readings[plan.operand];
  if (reading.dtype != spec.result.dtype) return Refusal{"it changes the dtype"};
  if (reading.dtype == DType::boolean) return Refusal{"bools are normalised"};
  if (!reading.guards.empty()) return Refusal{"it pads"};
  plan.element_size = size_of(reading.dtype);
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
  } else {
    plan.row = take(plan.outer, longest(plan.outer), reading.quantity).value_or(CopyLoop{});
  }
  cut(plan);
  Offer offer;
  offer.seconds = plan.seconds;
  offer.path = plan.is_transpose() ? fmt::format("squares of {0} x {0}", square)
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
          offer};
}

}  // namespace einrel
