#include "kernel/products/dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>

#include "base/error.h"
#include "kernel/cancel.h"
#include "kernel/products/dot_tile.h"
#include "kernel/products/pack.h"
#include "kernel/products/store.h"

namespace einrel::contraction {
namespace {

constexpr std::int64_t most_columns = 8;
constexpr std::int64_t most_rows = 8;  // of a tile
constexpr std::int64_t most_packed_bytes = most_workspace_bytes / 2;
constexpr std::int64_t longest_table = 1 << 16;  // of offsets: a limit of what is kept, whatever the processor
/// Positions that each lane of a vector adds in f32, one after another.
constexpr std::int64_t longest_lane = most_additions / 2;

std::int64_t inner_count(const DotPlan& plan) { return plan.inner.extent * position_count(plan.outer_inner); }

// --- the plan ---

/// Calls `use` with the types that a product computes in and that A is stored in; what it gives for a pair that has no
/// kernels otherwise.
template <class Use>
decltype(auto) with_types(const Product& product, Use&& use) {
  switch (product.match.type) {
    case DType::f32:
      if (product.a.reading.dtype == DType::bf16) return use.template operator()<float, BFloat16>();
      if (product.a.reading.dtype == DType::f16) return use.template operator()<float, Float16>();
      return use.template operator()<float, float>();
    case DType::f64: return use.template operator()<double, double>();
    case DType::i32: return use.template operator()<std::int32_t, std::int32_t>();
    case DType::i64: return use.template operator()<std::int64_t, std::int64_t>();
    default: throw Bug("a contraction computes in a type that it refuses");
  }
}

/// Why A cannot be used where it lies; "" if it can.
std::string dot_obstacle(const Product& product) {
  const Reading& a = product.a.reading;
  const bool widens = product.match.type == DType::f32 && is_narrow(a.dtype);
  if (a.dtype != product.match.type && !(widens && product.match.combination == Combination{})) {
    return "an operand is stored in another type";
  }
  if (!a.guards.empty()) return "an operand is padded";
  if (!a.aligned) return "an operand is misaligned";
  return product.a.factor == 1 ? "" : "an operand has a factor";
}

/// B's inner positions lie side by side as A's do, and no two loops of columns are in the way.
bool can_use_b(const DotPlan& plan) {
  const Side& b = plan.product.b;
  return b.reading.dtype == plan.product.match.type && b.reading.guards.empty() && b.reading.aligned && b.factor == 1 &&
         plan.inner.steps[b.reading.quantity] == 1 && plan.product.columns.size() <= 1;
}

double modelled_seconds(const DotPlan& plan) {
  const DType type = plan.product.match.type;
  const double vector = static_cast<double>(nominal_processor.vector_bytes) / static_cast<double>(size_of(type));
  const auto k = static_cast<double>(inner_count(plan));
  const auto n = static_cast<double>(plan.columns);
  const auto stretches = static_cast<double>(position_count(plan.outer_inner));
  const double steps = stretches * (static_cast<double>(plan.inner.extent) / vector + 1);
  const bool plain = plan.product.match.combination == Combination{} && is_float(type);
  const double per_step = plain ? (n + 1) / nominal_processor.operations_per_cycle : 3 * n;
  const double rows = static_cast<double>(plan.row.extent);
  const auto products = static_cast<double>(position_count(plan.rest));
  const double one_row = steps * per_step + 12 * n + 6;
  const double packing = plan.packs_b ? n * k * 2 : 0;
  const double bytes = products * rows * k * static_cast<double>(size_of(plan.product.a.reading.dtype));
  const double computing = products * nominal_processor.cycle_seconds * (rows * one_row + packing + 100);
  return 3e-7 + std::max(computing, transfer_seconds(bytes));
}

/// Blocks and parts, for chosen loops.
void finish(DotPlan& plan) {
  plan.seconds = modelled_seconds(plan);
  const std::int64_t wanted = parts_for(plan.seconds, plan.packs_b ? packed_part_seconds : unpacked_part_seconds);
  const std::int64_t rest = position_count(plan.rest);
  const std::int64_t blocks = ceil_div(wanted, rest);
  plan.row_block = std::min<std::int64_t>(256, ceil_div(ceil_div(plan.row.extent, blocks), most_rows) * most_rows);
  plan.parts = std::min(wanted, rest * ceil_div(plan.row.extent, plan.row_block));
}

std::variant<DotPlan, std::string> plan_oriented(const Product& product) {
  if (std::string reason = dot_obstacle(product); !reason.empty()) return reason;
  DotPlan plan{product, single_loop(product), {}, {}, product.batch};
  plan.columns = position_count(product.columns);
  if (plan.columns > most_columns) return "it has many columns and rows";
  const auto contiguous = std::find_if(product.inner.begin(), product.inner.end(),
                                       [&](const Loop& loop) { return loop.steps[product.a.reading.quantity] == 1; });
  if (contiguous == product.inner.end()) return "no reduced loop is contiguous in an operand";
  plan.inner = *contiguous;
  plan.outer_inner = without(product.inner, static_cast<std::size_t>(contiguous - product.inner.begin()));
  if (position_count(plan.outer_inner) > longest_table) return "it has too many reduced loops";
  if (!product.rows.empty()) {
    const auto longest = std::max_element(product.rows.begin(), product.rows.end(),
                                          [](const Loop& x, const Loop& y) { return x.extent < y.extent; });
    plan.row = *longest;
    const std::vector<Loop> others = without(product.rows, static_cast<std::size_t>(longest - product.rows.begin()));
    plan.rest.insert(plan.rest.end(), others.begin(), others.end());
  }
  plan.packs_b = !can_use_b(plan);
  const auto size = static_cast<std::int64_t>(size_of(product.match.type));
  if (plan.packs_b && inner_count(plan) > most_packed_bytes / size / plan.columns) {
    return "the operand of few columns is too large to be copied";
  }
  finish(plan);
  return plan;
}

// --- running it ---

/// The inner loops in the order in which B is packed.
std::vector<Loop> packed_inner(const DotPlan& plan) {
  std::vector<Loop> loops = plan.outer_inner;
  loops.push_back(plan.inner);
  return loops;
}

/// What all parts share.
template <class T>
struct PreparedDot {
  explicit PreparedDot(DotPlan of)
      : plan(std::move(of)),
        column_offsets(static_cast<std::size_t>(plan.columns)),
        rest(plan.rest, plan.product.bases) {
    const Side& b = plan.product.b;
    const std::int64_t count = position_count(plan.outer_inner);
    a_outer.resize(static_cast<std::size_t>(count));
    b_outer.resize(static_cast<std::size_t>(count));
    fill_offsets(plan.outer_inner, plan.product.a.reading.quantity, 0, count, a_outer.data());
    if (plan.packs_b) {
      for (std::int64_t o = 0; o < count; ++o) b_outer[static_cast<std::size_t>(o)] = o * plan.inner.extent;
      packer.emplace(b, plan.product.columns, packed_inner(plan), plan.product.match.type);
      packer->select_lines(0, plan.columns);
      packer->select_inner(0, inner_count(plan));
    } else {
      fill_offsets(plan.outer_inner, b.reading.quantity, 0, count, b_outer.data());
    }
    fill_offsets(plan.product.columns, output_quantity, 0, plan.columns, column_offsets.data());
  }

  DotPlan plan;
  /// Offsets of the inner positions but those of the innermost loop.
  std::vector<std::int64_t> a_outer;
  std::vector<std::int64_t> b_outer;
  std::vector<std::int64_t> column_offsets;
  std::optional<Packer<T>> packer;
  Odometer rest;
};

template <class T, class Stored>
class DotPart {
 public:
  DotPart(const PreparedDot<T>& prepared, const Arrays& arrays, std::byte* workspace)
      : prepared_(prepared),
        plan_(prepared.plan),
        kernels_(dot_kernels<T, Stored>(plan_.product.match.combination)),
        arrays_(arrays),
        longest_run_(longest_lane * kernels_.vector),
        adds_runs_(sums_in_f32(plan_.product.match) && steps_of(plan_.inner.extent) * line_count() > longest_lane),
        results_(reinterpret_cast<T*>(workspace)),
        packed_b_(results_ + plan_.row_block * plan_.columns),
        packer_(prepared.packer),
        row_offsets_(static_cast<std::size_t>(plan_.row_block)) {
    tile_.a_row = plan_.row.steps[plan_.product.a.reading.quantity];
    tile_.inner = plan_.inner.extent;
    tile_.a_outer = prepared.a_outer.data();
    tile_.b_outer = prepared.b_outer.data();
    tile_.outer = static_cast<std::int64_t>(prepared.a_outer.size());
    tile_.b_column = plan_.packs_b                   ? inner_count(plan_)
                     : plan_.product.columns.empty() ? 0
                                                     : plan_.product.columns[0].steps[plan_.product.b.reading.quantity];
  }

  void run(std::int64_t part) {
    const std::int64_t blocks = ceil_div(plan_.row.extent, plan_.row_block);
    const std::int64_t units = position_count(plan_.rest) * blocks;
    const std::int64_t begin = units * part / plan_.parts;
    const std::int64_t end = units * (part + 1) / plan_.parts;
    Odometer rest = prepared_.rest;
    std::int64_t position = begin / blocks;
    rest.seek(position);
    select(rest.quantities());
    for (std::int64_t unit = begin; unit < end; ++unit) {
      throw_if_cancelled();
      if (unit / blocks != position) {
        rest.advance();
        ++position;
        select(rest.quantities());
      }
      compute_rows(unit % blocks * plan_.row_block, rest.quantities());
    }
  }

 private:
  /// The operands at a position of the rest.
  void select(const std::vector<std::int64_t>& at) {
    const Side& a = plan_.product.a;
    const Side& b = plan_.product.b;
    a_ = reinterpret_cast<const Stored*>(arrays_.operands[a.operand]) + at[a.reading.quantity];
    if (!packer_) {
      b_ = reinterpret_cast<const T*>(arrays_.operands[b.operand]) + at[b.reading.quantity];
      return;
    }
    packer_->select_batch(arrays_.operands[b.operand], at.data());
    for (std::int64_t c = 0; c < plan_.columns; ++c) packer_->pack(c, 1, 1, packed_b_ + c * tile_.b_column);
    b_ = packed_b_;
  }

  void compute_rows(std::int64_t begin, const std::vector<std::int64_t>& at) {
    const std::int64_t count = std::min(plan_.row_block, plan_.row.extent - begin);
    for (std::int64_t r = 0; r < count; r += most_rows) {
      const std::int64_t height = std::min(most_rows, count - r);
      for (std::int64_t c = 0; c < plan_.columns;) {
        const std::int64_t width = plan_.columns - c >= 4 ? 4 : plan_.columns - c >= 2 ? 2 : 1;
        compute_tile(begin + r, height, r, c, width);
        c += width;
      }
    }
    const std::int64_t step = plan_.row.steps[output_quantity];
    for (std::int64_t r = 0; r < count; ++r) row_offsets_[static_cast<std::size_t>(r)] = (begin + r) * step;
    const Product& product = plan_.product;
    std::byte* const result = arrays_.result + at[output_quantity] * static_cast<std::int64_t>(size_of(product.result));
    store_block(BlockStore<T>{results_, plan_.columns, count, plan_.columns, result, product.result,
                              row_offsets_.data(), prepared_.column_offsets.data(), static_cast<T>(product.match.scale),
                              product.accumulate, product.match.combination.reduce});
  }

  /// Some rows and columns, by the largest kernels there are.
  void compute_tile(std::int64_t row, std::int64_t rows, std::int64_t to_row, std::int64_t column,
                    std::int64_t columns) {
    for (std::int64_t c = 0; c < columns;) {
      std::int64_t width = columns - c;
      if (width == 3) width = 2;
      for (std::int64_t r = 0; r < rows;) {
        const auto [height, wide] = largest_kernel(rows - r, width);
        width = wide;
        tile_.a = a_ + (row + r) * tile_.a_row;
        tile_.b = b_ + (column + c) * tile_.b_column;
        std::array<T, most_values> values{};
        tile_.results = values.data();
        reduce_tile(kernels_.functions[index_of(height)][index_of(width)], static_cast<std::size_t>(height * width));
        for (std::int64_t i = 0; i < height; ++i) {
          std::copy_n(values.data() + i * width, width, results_ + (to_row + r + i) * plan_.columns + column + c);
        }
        r += height;
      }
      c += width;
    }
  }

  static constexpr std::size_t most_values = most_rows * 4;  // of a tile

  /// How many vectors a line of inner positions takes, and how many lines there are.
  std::int64_t steps_of(std::int64_t inner) const { return ceil_div(inner, kernels_.vector); }
  std::int64_t line_count() const { return position_count(plan_.outer_inner); }

  /// All inner positions, or, of sums of f32, a run at a time: the sums of runs are added in double.
  void reduce_tile(DotFunction<T, Stored> function, std::size_t count) {
    if (!adds_runs_) return function(tile_);
    std::array<double, most_values> sums{};
    DotTile<T, Stored> run = tile_;
    const std::int64_t most_outer = std::max<std::int64_t>(1, longest_lane / steps_of(tile_.inner));
    for (std::int64_t o = 0; o < tile_.outer; o += most_outer) {
      run.outer = std::min(most_outer, tile_.outer - o);
      run.a_outer = tile_.a_outer + o;
      run.b_outer = tile_.b_outer + o;
      for (std::int64_t p = 0; p < tile_.inner; p += longest_run_) {
        run.inner = std::min(longest_run_, tile_.inner - p);
        run.a = tile_.a + p;
        run.b = tile_.b + p;
        function(run);
        for (std::size_t i = 0; i < count; ++i) sums[i] += static_cast<double>(run.results[i]);
      }
    }
    for (std::size_t i = 0; i < count; ++i) tile_.results[i] = static_cast<T>(sums[i]);
  }

  struct Shape {
    std::int64_t rows = 1;
    std::int64_t columns = 1;
  };

  /// Of the kernels with at most so many rows and columns, one of the most rows among those of the most columns.
  Shape largest_kernel(std::int64_t rows, std::int64_t columns) const {
    for (std::int64_t width = columns; width > 1; width /= 2) {
      for (std::int64_t height = most_rows; height >= 1; height /= 2) {
        if (height <= rows && kernels_.functions[index_of(height)][index_of(width)] != nullptr) return {height, width};
      }
    }
    for (std::int64_t height = most_rows; height > 1; height /= 2) {
      if (height <= rows && kernels_.functions[index_of(height)][0] != nullptr) return {height, 1};
    }
    return {1, 1};
  }

  /// Of 1, 2, 4, 8.
  static std::size_t index_of(std::int64_t count) { return count == 8 ? 3 : static_cast<std::size_t>(count / 2); }

  const PreparedDot<T>& prepared_;
  const DotPlan& plan_;
  const DotKernels<T, Stored>& kernels_;
  const Arrays& arrays_;
  const std::int64_t longest_run_;
  const bool adds_runs_;  ///< sums are too long for f32
  T* results_;            ///< [row][column] of a unit
  T* packed_b_;           ///< [column][inner]
  DotTile<T, Stored> tile_;
  const Stored* a_ = nullptr;
  const T* b_ = nullptr;
  std::optional<Packer<T>> packer_;
  std::vector<std::int64_t> row_offsets_;
};

}  // namespace

std::variant<DotPlan, std::string> plan_dot(const Product& product) {
  if (!product.match.reduces) return "it reduces nothing";
  std::variant<DotPlan, std::string> plan = plan_oriented(product);
  std::variant<DotPlan, std::string> other = plan_oriented(transposed(product));
  if (std::holds_alternative<std::string>(plan)) return other;
  if (std::holds_alternative<std::string>(other)) return plan;
  return std::get<DotPlan>(plan).seconds <= std::get<DotPlan>(other).seconds ? plan : other;
}

std::int64_t own_bytes(const DotPlan& plan) {
  const auto size = static_cast<std::int64_t>(size_of(plan.product.match.type));
  const std::int64_t results = plan.row_block * plan.columns;
  return size * (results + (plan.packs_b ? plan.columns * inner_count(plan) : 0));
}

PreparedKernel prepare(DotPlan plan) {
  const std::int64_t bytes = own_bytes(plan);
  const std::int64_t parts = plan.parts;
  const auto run = with_types(plan.product, [&]<class T, class Stored>() -> PartFunction {
    return [prepared = std::make_shared<const PreparedDot<T>>(std::move(plan))](
               const Arrays& arrays, Workspace workspace, std::int64_t part) {
      DotPart<T, Stored>(*prepared, arrays, workspace.own).run(part);
    };
  });
  return {bytes, 0, {Stage{parts, run}}};
}

std::string describe(const DotPlan& plan) {
  const char* const instructions = with_types(plan.product, [&]<class T, class Stored>() {
    return dot_kernels<T, Stored>(plan.product.match.combination).instructions;
  });
  return fmt::format("dot products of {} columns ({})", plan.columns, instructions);
}

}  // namespace einrel::contraction
