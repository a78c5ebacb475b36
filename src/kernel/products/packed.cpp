#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "kernel/cancel.h"
#include "kernel/products/pack.h"
#include "kernel/products/packed_plan.h"
#include "kernel/products/store.h"
#include "kernel/products/tile.h"

namespace einrel::contraction {
namespace {

/// A half-open range of flattened positions.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t count() const { return end - begin; }
};

/// The piece of [0, total) that starts `index` pieces in.
Range piece(std::int64_t total, std::int64_t size, std::int64_t index) {
  return {index * size, std::min(total, (index + 1) * size)};
}

Specials both(Specials x, Specials y) {
  return {x.nan || y.nan, x.plus_infinity || y.plus_infinity, x.minus_infinity || y.minus_infinity,
          x.subnormal || y.subnormal};
}

/// Whether join may give NaN.
bool may_give_nan(Join join, Specials a, Specials b) {
  if (a.nan || b.nan) return true;
  const bool infinity = a.plus_infinity || a.minus_infinity || b.plus_infinity || b.minus_infinity;
  switch (join) {
    case Join::add: return (a.plus_infinity && b.minus_infinity) || (a.minus_infinity && b.plus_infinity);
    case Join::maximum:
    case Join::minimum: return false;
    case Join::multiply:
    case Join::square_difference:
    case Join::absolute_difference: return infinity;
  }
  return infinity;
}

/// What panels of two operands that hold these values are multiplied by.
template <class T, class Packed>
const TileKernels<T, Packed>& kernels_for(Combination combination, Specials a, Specials b) {
  if constexpr (is_pair<Packed>) {
    return *bf16_kernels(a.subnormal || b.subnormal);
  } else {
    return tile_kernels<T>(combination, may_give_nan(combination.join, a, b));
  }
}

/// Columns that all parts use, at some inner positions, and which buffer of the shared workspace they are packed into.
struct SharedBlock {
  Range columns;
  Range inner;
  std::int64_t buffer = 0;
};

template <class T, class Packed>
bool is_turned(const PackedPlan& plan) {
  return kernels_for<T, Packed>(plan.product.match.combination, {}, {}).turned;
}

/// Computes one part, or a share of the work on columns that all parts use.
template <class T, class Packed = T>
class PackedPart {
 public:
  PackedPart(const PackedPlan& plan, const Arrays& arrays, Workspace workspace)
      : plan_(plan),
        arrays_(arrays),
        a_(plan.product.a, plan.product.rows, plan.product.inner, plan.product.match.type, is_turned<T, Packed>(plan)),
        b_(plan.product.b, plan.product.columns, plan.product.inner, plan.product.match.type),
        kernels_(&kernels_for<T, Packed>(plan.product.match.combination, {}, {})),
        shared_memory_(workspace.shared) {
    const PackedWorkspace offsets = workspace_of(plan);
    a_panels_ = reinterpret_cast<Packed*>(workspace.own + offsets.a);
    b_panels_ = reinterpret_cast<Packed*>(workspace.own + offsets.b);
    block_ = reinterpret_cast<T*>(workspace.own + offsets.block);
  }

  void run(std::int64_t part) {
    const Product& product = plan_.product;
    const std::int64_t column_parts = ceil_div(plan_.columns, plan_.part_columns);
    const std::int64_t row_parts = ceil_div(plan_.rows, plan_.part_rows);
    columns_ = piece(plan_.columns, plan_.part_columns, part % column_parts);
    select_rows(part / column_parts % row_parts);
    batch_ = piece(plan_.batch, plan_.part_batch, part / column_parts / row_parts);
    if (plan_.through_block) {
      column_offsets_.resize(static_cast<std::size_t>(columns_.count()));
      fill_offsets(product.columns, output_quantity, columns_.begin, columns_.count(), column_offsets_.data());
      block_rows_.resize(row_offsets_.size());
      for (std::size_t r = 0; r < block_rows_.size(); ++r) {
        block_rows_[r] = static_cast<std::int64_t>(r) * columns_.count();
      }
    }
    Odometer batch(product.batch, product.bases);
    batch.seek(batch_.begin);
    for (std::int64_t i = batch_.begin; i < batch_.end; ++i, batch.advance()) {
      a_.select_batch(arrays_.operands[product.a.operand], batch.quantities().data());
      b_.select_batch(arrays_.operands[product.b.operand], batch.quantities().data());
      result_ =
          arrays_.result + batch.quantities()[output_quantity] * static_cast<std::int64_t>(size_of(product.result));
      multiply();
    }
  }

  /// Packs one block of the columns that are shared.
  void pack_shared(const SharedBlock& shared, std::int64_t block) {
    select_buffer(shared);
    const Range columns = shared.columns;
    inner_ = shared.inner;
    b_.select_inner(inner_.begin, inner_.count());
    b_.select_batch(arrays_.operands[plan_.product.b.operand], plan_.product.bases.data());
    select_shared(columns, columns.begin + block * plan_.column_block);
    pack_columns();
    shared_specials()[block] = b_specials_;
  }

  /// One part of the rows times all columns that are shared.
  void multiply_shared(const SharedBlock& shared, std::int64_t part) {
    select_buffer(shared);
    const Range columns = shared.columns;
    inner_ = shared.inner;
    select_rows(part);
    a_.select_inner(inner_.begin, inner_.count());
    a_.select_batch(arrays_.operands[plan_.product.a.operand], plan_.product.bases.data());
    result_ = arrays_.result +
              plan_.product.bases[output_quantity] * static_cast<std::int64_t>(size_of(plan_.product.result));
    begin_rows();
    for (std::int64_t c = columns.begin; c < columns.end; c += plan_.column_block) {
      throw_if_cancelled();
      select_shared(columns, c);
      b_specials_ = shared_specials()[(c - columns.begin) / plan_.column_block];
      find_contiguous_panels();
      compute_tiles();
    }
  }

 private:
  void select_rows(std::int64_t part) {
    rows_ = piece(plan_.rows, plan_.part_rows, part);
    row_offsets_.assign(static_cast<std::size_t>(rows_.count() + plan_.tile_rows), 0);
    fill_offsets(plan_.product.rows, output_quantity, rows_.begin, rows_.count(), row_offsets_.data());
    a_.select_lines(rows_.begin, rows_.count());
  }

  void select_buffer(const SharedBlock& shared) {
    shared_ = reinterpret_cast<Packed*>(shared_memory_ + shared.buffer * shared_buffer_bytes(plan_));
  }

  void select_shared(Range columns, std::int64_t begin) {
    block_columns_ = {begin, std::min(begin + plan_.column_block, columns.end)};
    b_panels_ = shared_ + (begin - columns.begin) * slots();
  }

  /// Of each block of shared columns, behind the panels.
  Specials* shared_specials() const {
    return reinterpret_cast<Specials*>(shared_ + plan_.shared_columns * einrel::contraction::slots(plan_));
  }

  /// How many elements or pairs of a line are packed.
  std::int64_t slots() const { return slots_for<Packed>(inner_.count()); }

  void multiply() {
    for (std::int64_t p = 0; p < plan_.inner; p += plan_.inner_block) {
      inner_ = {p, std::min(p + plan_.inner_block, plan_.inner)};
      a_.select_inner(inner_.begin, inner_.count());
      b_.select_inner(inner_.begin, inner_.count());
      begin_rows();
      for (std::int64_t c = columns_.begin; c < columns_.end; c += plan_.column_block) {
        throw_if_cancelled();
        block_columns_ = {c, std::min(c + plan_.column_block, columns_.end)};
        pack_columns();
        if (!plan_.through_block) find_contiguous_panels();
        compute_tiles();
      }
    }
    if (plan_.through_block) store_whole_block();
  }

  /// Rows whose elements lie side by side are packed, if at all, when the first columns meet them: while the tiles
  /// before theirs are computed, they are fetched.
  void begin_rows() {
    rows_await_columns_ = a_.packs_line_by_line() && !is_choosy(plan_);
    if (rows_await_columns_) return;
    const std::int64_t whole = rows_.count() / plan_.tile_rows * plan_.tile_rows;
    if (whole > 0) a_.pack(0, whole, plan_.tile_rows, a_panels_);
    if (whole < rows_.count()) pack_tile_rows(whole);
    if (is_choosy(plan_)) a_specials_ = specials(a_panels_, whole + (whole < rows_.count() ? height_at(whole) : 0));
  }

  /// The rows of the tiles that begin at one.
  void pack_tile_rows(std::int64_t row) {
    const std::int64_t height = height_at(row);
    a_.pack(row, std::min(height, rows_.count() - row), height, a_panels_ + row * slots());
  }

  /// The last tiles have fewer rows, where there is a kernel for them.
  std::int64_t height_at(std::int64_t row) const {
    const std::int64_t left = rows_.count() - row;
    const bool is_last =
        left < plan_.tile_rows && kernels_->functions[static_cast<std::size_t>(left - 1)][1] != nullptr;
    return is_last ? left : plan_.tile_rows;
  }

  void pack_columns() {
    b_.select_lines(block_columns_.begin, block_columns_.count());
    const std::int64_t whole = block_columns_.count() / plan_.tile_lanes * plan_.tile_lanes;
    if (whole > 0) b_.pack(0, whole, plan_.tile_lanes, b_panels_);
    if (const std::int64_t rest = block_columns_.count() - whole; rest > 0) {
      b_.pack(whole, rest, vectors_for(rest) * kernels_->vector, b_panels_ + whole * slots());
    }
    if (is_choosy(plan_)) find_column_specials();
  }

  /// A last panel of few columns is one vector wide, where there is a kernel for it.
  std::int64_t vectors_for(std::int64_t columns) const {
    const bool narrow =
        columns <= kernels_->vector && kernels_->functions[static_cast<std::size_t>(plan_.tile_rows - 1)][0] != nullptr;
    return narrow ? 1 : 2;
  }

  Specials specials(const Packed* panels, std::int64_t lines) const {
    if constexpr (std::is_floating_point_v<T>) return specials_in(panels, lines * slots());
    return {};
  }

  void find_column_specials() {
    b_specials_ = {};
    for (std::int64_t c = 0; c < block_columns_.count(); c += plan_.tile_lanes) {
      const std::int64_t count = std::min(plan_.tile_lanes, block_columns_.count() - c);
      b_specials_ = both(b_specials_, specials(b_panels_ + c * slots(), vectors_for(count) * kernels_->vector));
    }
  }

  /// Where the columns of a panel lie side by side in the result, tiles are stored there at once.
  void find_contiguous_panels() {
    column_offsets_.resize(static_cast<std::size_t>(block_columns_.count()));
    fill_offsets(plan_.product.columns, output_quantity, block_columns_.begin, block_columns_.count(),
                 column_offsets_.data());
    contiguous_.clear();
    for (auto c = column_offsets_.begin(); c < column_offsets_.end();) {
      const auto end = c + std::min(column_offsets_.end() - c, static_cast<std::ptrdiff_t>(plan_.tile_lanes));
      contiguous_.push_back(std::adjacent_find(c, end, [](std::int64_t x, std::int64_t y) { return y != x + 1; }) ==
                            end);
      c = end;
    }
  }

  void compute_tiles() {
    kernels_ = &kernels_for<T, Packed>(plan_.product.match.combination, a_specials_, b_specials_);
    const std::int64_t panel = plan_.tile_lanes * slots();
    Tile<T, Packed> tile;
    tile.inner = slots();
    tile.a_row = plan_.rows_in_place.value_or(0);
    if (shared_ != nullptr) look_ahead_in_columns(tile);
    if (kernels_->begin != nullptr) kernels_->begin();
    for (std::int64_t r = 0; r < rows_.count(); r += plan_.tile_rows) {
      if (rows_await_columns_ && !plan_.rows_in_place) pack_tile_rows(r);
      tile.a = plan_.rows_in_place ? a_.line_in_place(r) : a_panels_ + r * slots();
      tile.rows = std::min(plan_.tile_rows, rows_.count() - r);
      RowsAhead ahead = rows_ahead(r);
      for (std::int64_t c = 0; c < block_columns_.count(); c += plan_.tile_lanes) {
        tile.b = b_panels_ + c / plan_.tile_lanes * panel;
        tile.lanes = std::min(plan_.tile_lanes, block_columns_.count() - c);
        tile.next_rows = ahead.take();
        compute(tile, r, c);
        tile.next_columns.begin += tile.next_columns.lines * fetched_of_line();
      }
    }
    rows_await_columns_ = false;
    if (kernels_->end != nullptr) kernels_->end();
  }

  /// How many elements of a line a tile fetches.
  std::int64_t fetched_of_line() const { return round_up(slots(), std::int64_t{fetched_slots}); }

  /// What the tiles of some rows fetch of the next rows, each a few lines.
  struct RowsAhead {
    const Packed* next = nullptr;
    std::int64_t left = 0;
    std::int64_t lines = 0;
    std::int64_t stride = 0;

    Ahead<Packed> take() {
      const Ahead<Packed> taken{next, std::min(lines, left), stride};
      left -= taken.lines;
      next += taken.lines * stride;
      return taken;
    }
  };

  /// The next rows of A come into the cache while these ones meet all columns: as they are, or packed.
  RowsAhead rows_ahead(std::int64_t row) const {
    const std::int64_t next = row + plan_.tile_rows;
    const std::int64_t count = std::min(plan_.tile_rows, rows_.count() - next);
    if (count <= 0) return {};
    const std::int64_t lines = ceil_div(plan_.tile_rows, ceil_div(block_columns_.count(), plan_.tile_lanes));
    if (rows_await_columns_) {
      const Packed* const begin = a_.line_in_place(next);
      if (begin == nullptr) return {};
      // Rows of several loops may lie elsewhere: then nothing comes of it.
      return {begin, count, lines, count > 1 ? a_.line_in_place(next + 1) - begin : 0};
    }
    if (shared_ != nullptr || plan_.rows_in_place) return {};
    return {a_panels_ + next * slots(), count, lines, slots()};
  }

  /// The next block of shared columns comes into the cache while all rows meet this one: from the third-level cache,
  /// which is slow.
  void look_ahead_in_columns(Tile<T, Packed>& tile) const {
    if (plan_.column_block >= plan_.shared_columns) return;  // one block, which is there
    const std::int64_t block = plan_.column_block * slots();
    const Packed* const next = b_panels_ + block;
    const std::int64_t tiles =
        ceil_div(rows_.count(), plan_.tile_rows) * ceil_div(block_columns_.count(), plan_.tile_lanes);
    constexpr std::int64_t most_lines = 4;
    const std::int64_t lines = std::min(most_lines, ceil_div(block, tiles * fetched_of_line()));
    tile.next_columns = {next < shared_ + plan_.shared_columns * slots() ? next : shared_, lines, fetched_of_line()};
  }

  void compute(Tile<T, Packed>& tile, std::int64_t row, std::int64_t column) {
    const auto height = static_cast<std::size_t>(height_at(row));
    const auto& kernels = plan_.rows_in_place ? kernels_->in_place : kernels_->functions;
    const TileFunction<T, Packed> function = kernels[height - 1][static_cast<std::size_t>(vectors_for(tile.lanes) - 1)];
    if (plan_.through_block) {
      tile.z = block_ + block_columns_.begin - columns_.begin + column;
      tile.z_rows = block_rows_.data() + row;
      tile.accumulate = inner_.begin > 0;
      function(tile);
      return;
    }
    const bool accumulate = inner_.begin > 0 || plan_.product.accumulate;
    const std::int64_t* const columns = column_offsets_.data() + column;
    const std::int64_t* const rows = row_offsets_.data() + row;
    if (contiguous_[static_cast<std::size_t>(column / plan_.tile_lanes)]) {
      tile.z = reinterpret_cast<T*>(result_) + columns[0];
      tile.z_rows = rows;
      tile.accumulate = accumulate;
      tile.scale = static_cast<T>(plan_.product.match.scale);
      function(tile);
      return;
    }
    std::array<std::int64_t, most_tile_rows> tile_rows{};
    for (std::size_t r = 0; r < tile_rows.size(); ++r) tile_rows[r] = static_cast<std::int64_t>(r) * plan_.tile_lanes;
    tile.z = block_;
    tile.z_rows = tile_rows.data();
    tile.accumulate = false;
    tile.scale = 1;
    function(tile);
    store(block_, plan_.tile_lanes, {tile.rows, tile.lanes}, rows, columns, accumulate);
  }

  struct Extents {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
  };

  void store(const T* values, std::int64_t stride, Extents extents, const std::int64_t* rows,
             const std::int64_t* columns, bool accumulate) const {
    store_block(BlockStore<T>{values, stride, extents.rows, extents.columns, result_, plan_.product.result, rows,
                              columns, static_cast<T>(plan_.product.match.scale), accumulate,
                              plan_.product.match.combination.reduce});
  }

  void store_whole_block() const {
    store(block_, columns_.count(), {rows_.count(), columns_.count()}, row_offsets_.data(), column_offsets_.data(),
          plan_.product.accumulate);
  }

  const PackedPlan& plan_;
  const Arrays& arrays_;
  Packer<Packed> a_;
  Packer<Packed> b_;
  const TileKernels<T, Packed>* kernels_;
  Packed* a_panels_ = nullptr;
  Packed* b_panels_ = nullptr;
  T* block_ = nullptr;        ///< a block of the result, or one tile
  Packed* shared_ = nullptr;  ///< the buffer that is in use
  std::byte* shared_memory_ = nullptr;
  Range batch_;
  Range rows_;
  Range columns_;
  Range block_columns_;
  Range inner_;
  bool rows_await_columns_ = false;  ///< none have met them
  Specials a_specials_;
  Specials b_specials_;
  std::byte* result_ = nullptr;               ///< at the position of the batch
  std::vector<std::int64_t> row_offsets_;     ///< in the result
  std::vector<std::int64_t> column_offsets_;  ///< of all columns through a block, else of the ones packed
  std::vector<std::int64_t> block_rows_;      ///< in the block
  std::vector<bool> contiguous_;              ///< per panel
};

/// Calls f with a part of the plan's element type.
template <class F>
void with_part(const PackedPlan& plan, const Arrays& arrays, Workspace workspace, F f) {
  if (plan.pairs) return f(PackedPart<float, BFloat16Pair>(plan, arrays, workspace));
  switch (plan.product.match.type) {
    case DType::f32: return f(PackedPart<float>(plan, arrays, workspace));
    case DType::f64: return f(PackedPart<double>(plan, arrays, workspace));
    case DType::i32: return f(PackedPart<std::int32_t>(plan, arrays, workspace));
    case DType::i64: return f(PackedPart<std::int64_t>(plan, arrays, workspace));
    default: throw Bug("a contraction computes in a type that it refuses");
  }
}

/// A stage packs the first block; then each one multiplies by a block and, where there are two buffers, packs the next
/// one. Packing comes last among the parts of a stage, for those threads that have fewer rows.
std::vector<Stage> shared_stages(const std::shared_ptr<const PackedPlan>& plan) {
  std::vector<SharedBlock> blocks;
  for (std::int64_t c = 0; c < plan->columns; c += plan->shared_columns) {
    const Range columns{c, std::min(c + plan->shared_columns, plan->columns)};
    for (std::int64_t p = 0; p < plan->inner; p += plan->inner_block) {
      const auto buffer = static_cast<std::int64_t>(blocks.size()) % plan->shared_buffers;
      blocks.push_back({columns, {p, std::min(p + plan->inner_block, plan->inner)}, buffer});
    }
  }
  std::vector<Stage> stages;
  const auto add = [&](std::optional<SharedBlock> multiplied, std::optional<SharedBlock> packed) {
    const std::int64_t products = multiplied ? parts(*plan) : 0;
    const std::int64_t packings = packed ? ceil_div(packed->columns.count(), plan->column_block) : 0;
    stages.push_back({products + packings, [=](const Arrays& arrays, Workspace workspace, std::int64_t index) {
                        with_part(*plan, arrays, workspace, [&](auto part) {
                          if (index < products) return part.multiply_shared(*multiplied, index);
                          part.pack_shared(*packed, index - products);
                        });
                      }});
  };
  const bool ahead = plan->shared_buffers > 1;
  add(std::nullopt, blocks[0]);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::optional<SharedBlock> next = i + 1 < blocks.size() ? std::optional(blocks[i + 1]) : std::nullopt;
    add(blocks[i], ahead ? next : std::nullopt);
    if (!ahead && next) add(std::nullopt, next);
  }
  return stages;
}

}  // namespace

PreparedKernel prepare(PackedPlan plan) {
  const auto shared = std::make_shared<const PackedPlan>(std::move(plan));
  if (shared->shared_columns > 0) return {own_bytes(*shared), shared_bytes(*shared), shared_stages(shared)};
  const auto run = [shared](const Arrays& arrays, Workspace workspace, std::int64_t index) {
    with_part(*shared, arrays, workspace, [&](auto part) { part.run(index); });
  };
  return {own_bytes(*shared), 0, {Stage{parts(*shared), run}}};
}

}  // namespace einrel::contraction
