#include "kernel/products/windows.h"

#include <algorithm>
#include <array>
#include <memory>

#include "kernel/cancel.h"
#include "kernel/products/pack.h"
#include "kernel/products/pack_ops.h"
#include "kernel/products/store.h"
#include "kernel/products/tile.h"

namespace einrel::contraction {
namespace {

/// What all parts share.
struct PreparedWindows {
  explicit PreparedWindows(WindowPlan of)
      : plan(std::move(of)),
        batch(plan.product.batch, plan.product.bases),
        inner_offsets(static_cast<std::size_t>(plan.inner)) {
    std::vector<Loop> inner = plan.product.inner;
    for (std::size_t l = 0; l < inner.size(); ++l) inner[l].steps = {step_in(plan.shape, plan.axes.inner[l])};
    fill_offsets(inner, 0, 0, plan.inner, inner_offsets.data());
  }

  WindowPlan plan;
  Odometer batch;
  std::vector<std::int64_t> inner_offsets;  ///< in the image
};

/// Computes one part.
template <class T>
class WindowPart {
 public:
  WindowPart(const PreparedWindows& prepared, const Arrays& arrays, Workspace workspace)
      : prepared_(prepared),
        plan_(prepared.plan),
        product_(plan_.product),
        arrays_(arrays),
        kernels_(tile_kernels<T>(Combination{}, false)),
        image_copy_(product_.a, plan_.axes, plan_.shape),
        b_(product_.b, product_.columns, product_.inner, product_.match.type),
        image_(reinterpret_cast<T*>(workspace.own)) {
    const WindowWorkspace offsets = workspace_of(plan_);
    panel_ = reinterpret_cast<T*>(workspace.own + offsets.panel);
    block_ = reinterpret_cast<T*>(workspace.own + offsets.block);
    transposed_ = reinterpret_cast<T*>(workspace.own + offsets.transposed);
    for (std::size_t r = 0; r < most_tile_rows; ++r) {
      tile_rows_[0][r] = static_cast<std::int64_t>(r) * kernels_.vector;
      tile_rows_[1][r] = 2 * tile_rows_[0][r];
    }
  }

  void run(std::int64_t part) {
    select(part);
    a_ = image_ + image_copy_.copy(arrays_.operands[product_.a.operand], quantities_, product_.rows, row_counts_,
                                   product_.inner, image_);
    find_offsets();
    b_.select_batch(arrays_.operands[product_.b.operand], quantities_.data());
    b_.select_lines(columns_begin_, columns_);
    result_ = arrays_.result + quantities_[output_quantity] * static_cast<std::int64_t>(size_of(product_.result));
    for (std::int64_t p = 0; p < plan_.inner; p += plan_.inner_block) {
      inner_begin_ = p;
      inner_ = std::min(plan_.inner_block, plan_.inner - p);
      b_.select_inner(inner_begin_, inner_);
      for (std::int64_t c = 0; c < columns_; c += plan_.tile_lanes) {
        throw_if_cancelled();
        compute_panel(c);
      }
    }
  }

 private:
  /// Which rows and columns, and every quantity at the first ones.
  void select(std::int64_t part) {
    const std::int64_t column_parts = ceil_div(plan_.columns, plan_.part_columns);
    columns_begin_ = part % column_parts * plan_.part_columns;
    columns_ = std::min(plan_.part_columns, plan_.columns - columns_begin_);
    part /= column_parts;
    std::vector<std::int64_t> starts(product_.rows.size());
    row_counts_.resize(starts.size());
    for (std::size_t l = starts.size(); l-- > 0;) {
      const std::int64_t pieces = ceil_div(product_.rows[l].extent, plan_.part_rows[l]);
      starts[l] = part % pieces * plan_.part_rows[l];
      row_counts_[l] = std::min(plan_.part_rows[l], product_.rows[l].extent - starts[l]);
      part /= pieces;
    }
    Odometer batch = prepared_.batch;
    batch.seek(part);
    quantities_ = batch.quantities();
    for (std::size_t q = 0; q < quantities_.size(); ++q) {
      for (std::size_t l = 0; l < starts.size(); ++l) {
        quantities_[q] = add_wrapping(quantities_[q], multiply_wrapping(starts[l], product_.rows[l].steps[q]));
      }
    }
  }

  /// Where lines of rows are in the image and in the result, and columns in the result.
  void find_offsets() {
    std::vector<Loop> rows = product_.rows;
    for (std::size_t l = 0; l < rows.size(); ++l) {
      rows[l].extent = row_counts_[l];
      rows[l].steps = {step_in(plan_.shape, plan_.axes.rows[l]), product_.rows[l].steps[output_quantity]};
    }
    fill(without(rows, rows.size() - 1), 0, line_images_);
    fill(without(rows, rows.size() - 1), 1, line_results_);
    lines_ = static_cast<std::int64_t>(line_images_.size());
    column_results_.resize(static_cast<std::size_t>(columns_));
    fill_offsets(product_.columns, output_quantity, columns_begin_, columns_, column_results_.data());
    // Rows that are stored together, in the order of the result.
    rearranges_ = store_of(plan_) == WindowStore::rearranged;
    if (!rearranges_) rows = {rows.back()};
    std::int64_t count = 1;
    for (std::size_t l = rows.size(); l-- > 0; count *= rows[l].extent) rows[l].steps[0] = count;
    order_by_step(rows, 1);
    fill(rows, 0, stored_rows_);
    fill(rows, 1, stored_results_);
  }

  static void fill(const std::vector<Loop>& loops, std::size_t quantity, std::vector<std::int64_t>& offsets) {
    offsets.resize(static_cast<std::size_t>(position_count(loops)));
    fill_offsets(loops, quantity, 0, static_cast<std::int64_t>(offsets.size()), offsets.data());
  }

  /// All rows and the columns of one panel.
  void compute_panel(std::int64_t column) {
    const std::int64_t columns = std::min(plan_.tile_lanes, columns_ - column);
    const std::int64_t vectors = columns <= kernels_.vector ? 1 : 2;
    const std::int64_t lanes = vectors * kernels_.vector;
    b_.pack(column, columns, lanes, panel_);
    const bool is_last = inner_begin_ + inner_ == plan_.inner;
    const bool keeps = plan_.inner_block < plan_.inner;
    const std::int64_t line_size = row_counts_.back() * lanes;
    T* const block = keeps ? block_ + column * lines_ * row_counts_.back() : block_;
    for (std::int64_t line = 0; line < lines_; ++line) {
      T* const z = keeps || rearranges_ ? block + line * line_size : block;
      compute_line(a_ + line_images_[static_cast<std::size_t>(line)], vectors, z);
      if (is_last && !rearranges_) store({z, lanes, columns}, column, line_results_[static_cast<std::size_t>(line)]);
    }
    if (is_last && rearranges_) store({block, lanes, columns}, column, 0);
  }

  /// Tiles as even as can be along the last loop of the rows.
  void compute_line(const T* a, std::int64_t vectors, T* z) const {
    const std::int64_t rows = row_counts_.back();
    const std::int64_t tiles = ceil_div(rows, kernels_.rows);
    Tile<T> tile;
    tile.lanes = vectors * kernels_.vector;
    tile.z_rows = tile_rows_[static_cast<std::size_t>(vectors - 1)].data();
    tile.a_row = step_in(plan_.shape, plan_.axes.rows.back());
    tile.a_inner = prepared_.inner_offsets.data() + inner_begin_;
    tile.b = panel_;
    tile.inner = inner_;
    tile.scale = static_cast<T>(product_.match.scale);
    tile.accumulate = inner_begin_ > 0;
    for (std::int64_t t = 0; t < tiles; ++t) {
      const std::int64_t begin = rows * t / tiles;
      const std::int64_t end = rows * (t + 1) / tiles;
      tile.a = a + begin * tile.a_row;
      tile.rows = end - begin;
      tile.z = z + begin * tile.lanes;
      kernels_.windows[static_cast<std::size_t>(tile.rows - 1)][static_cast<std::size_t>(vectors - 1)](tile);
    }
  }

  /// Finished values: row r and column c at values[r * lanes + c].
  struct Values {
    const T* values = nullptr;
    std::int64_t lanes = 0;
    std::int64_t columns = 0;
  };

  /// The rows that are stored together, from an offset in the result on.
  void store(const Values& from, std::int64_t column, std::int64_t offset) {
    BlockStore<T> block;
    block.values = from.values;
    block.stride = from.lanes;
    block.row_count = static_cast<std::int64_t>(stored_results_.size());
    block.rows = stored_results_.data();
    block.column_count = from.columns;
    block.columns = column_results_.data() + column;
    block.result = result_ + offset * static_cast<std::int64_t>(size_of(product_.result));
    block.stored = product_.result;
    block.accumulate = product_.accumulate;
    store_of(plan_) == WindowStore::plain ? store_block(block) : store_transposed(block);
  }

  void store_transposed(BlockStore<T> block) const {
    const T* const values = block.values;
    const std::int64_t lanes = block.stride;
    const std::int64_t row_count = block.row_count;
    std::array<const T*, rows_at_once> rows{};
    std::swap(block.row_count, block.column_count);
    std::swap(block.rows, block.columns);
    block.values = transposed_;
    for (std::int64_t r = 0; r < row_count; r += rows_at_once, block.columns += rows_at_once) {
      block.column_count = std::min(rows_at_once, row_count - r);
      block.stride = block.column_count;
      for (std::int64_t i = 0; i < block.column_count; ++i) {
        rows[static_cast<std::size_t>(i)] = values + stored_rows_[static_cast<std::size_t>(r + i)] * lanes;
      }
      transpose_lines(rows.data(), block.column_count, block.row_count, transposed_, block.stride);
      store_block(block);
    }
  }

  const PreparedWindows& prepared_;
  const WindowPlan& plan_;
  const Product& product_;
  const Arrays& arrays_;
  const TileKernels<T>& kernels_;
  ImageCopy<T> image_copy_;
  Packer<T> b_;
  T* image_ = nullptr;
  T* panel_ = nullptr;
  T* block_ = nullptr;  ///< of the result: all of the part, or one line of rows and one panel of columns
  T* transposed_ = nullptr;
  std::array<std::array<std::int64_t, most_tile_rows>, 2> tile_rows_{};  ///< offsets in a tile of 1 or 2 vectors
  const T* a_ = nullptr;  ///< the first row and inner position in the image
  std::byte* result_ = nullptr;
  std::vector<std::int64_t> quantities_;
  std::vector<std::int64_t> row_counts_;
  std::int64_t columns_begin_ = 0;
  std::int64_t columns_ = 0;
  std::int64_t inner_begin_ = 0;
  std::int64_t inner_ = 0;
  std::int64_t lines_ = 1;  ///< positions of the row loops but the last
  std::vector<std::int64_t> line_images_;
  std::vector<std::int64_t> line_results_;
  std::vector<std::int64_t> column_results_;
  bool rearranges_ = false;
  std::vector<std::int64_t> stored_rows_;     ///< of the block: those of a line, or all
  std::vector<std::int64_t> stored_results_;  ///< where they go
};

}  // namespace

PreparedKernel prepare(WindowPlan plan) {
  const auto prepared = std::make_shared<const PreparedWindows>(std::move(plan));
  const auto run = [prepared](const Arrays& arrays, Workspace workspace, std::int64_t part) {
    if (prepared->plan.product.match.type == DType::f32) {
      WindowPart<float>(*prepared, arrays, workspace).run(part);
    } else {
      WindowPart<double>(*prepared, arrays, workspace).run(part);
    }
  };
  return {own_bytes(prepared->plan), 0, {Stage{parts(prepared->plan), run}}};
}

}  // namespace einrel::contraction
