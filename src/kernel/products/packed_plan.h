#pragma once

#include <optional>
#include <string>

#include "kernel/kernel.h"
#include "kernel/products/product.h"

namespace einrel::contraction {

/// How a product is cut: at most so many rows and columns, and so many inner positions, are packed at a time. These are
/// numbers of the algorithm, the best ones measured where caches are about nominal_processor's; inner_bytes says in
/// which order values are added.
struct BlockSizes {
  std::int64_t rows = 1536;         ///< of A, packed for one part: at best they stay in the third-level cache
  std::int64_t columns = 256;       ///< of B, packed at a time: they stay in the second-level cache
  std::int64_t inner_bytes = 2048;  ///< of one line: a tile's lines of A and B stay in the first-level cache
  std::int64_t shared_block = 128;  ///< where parts share B, of inner_bytes each: the next ones come meanwhile
  std::int64_t shared_tiles = 10;   ///< rows of tiles of one part that shares B: they stay in the second-level cache
  double part_seconds = 1.5 * packed_part_seconds;      ///< modelled, of a part at least
  std::int64_t shared_bytes = most_workspace_bytes;     ///< of columns that are packed for all parts
  double in_place_seconds = 2 * unpacked_part_seconds;  ///< as part_seconds, of a part that packs no rows
};

/// How a product is computed in packed tiles.
struct PackedPlan {
  Product product;  ///< with columns that are contiguous in the result, where there are such
  std::int64_t batch = 1;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t inner = 1;

  /// Panels hold pairs of bf16, for the processor's own products of them.
  bool pairs = false;

  std::int64_t tile_rows = 1;
  std::int64_t tile_lanes = 1;
  std::int64_t inner_block = 1;
  std::int64_t column_block = 1;
  /// Rows of A are read where they lie, not from panels: so many elements apart.
  std::optional<std::int64_t> rows_in_place;
  /// Whole blocks of the result are computed in the workspace: it is narrower than what is computed, misaligned, or no
  /// two columns lie side by side in it.
  bool through_block = false;

  /// Where not 0, so many columns of B are packed for all parts together, at some inner positions at a time; then parts
  /// are of rows. Else each part packs what it needs.
  std::int64_t shared_columns = 0;
  std::int64_t shared_buffers = 1;  ///< 2: the next ones are packed while the parts use these

  /// Each part computes so many at most.
  std::int64_t part_batch = 1;
  std::int64_t part_rows = 1;
  std::int64_t part_columns = 1;

  double seconds = 0;  ///< modelled, on one thread
};

/// The cheaper one of the two orientations of a product.
PackedPlan plan_packed(const Product& product, const BlockSizes& sizes = {});

/// Whether tile kernels are chosen by what the panels hold: a NaN may make max and min slower, a subnormal products of
/// bf16.
bool is_choosy(const PackedPlan& plan);

/// How many elements or pairs of a line are packed at a time at most.
std::int64_t slots(const PackedPlan& plan);

/// The workspace of one part, as offsets in bytes.
struct PackedWorkspace {
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t block = 0;  ///< of the result
  std::int64_t total = 0;
};
PackedWorkspace workspace_of(const PackedPlan& plan);

std::int64_t own_bytes(const PackedPlan& plan);
std::int64_t shared_bytes(const PackedPlan& plan);
/// One of its buffers: of all columns that are shared, packed, and what is known of their blocks.
std::int64_t shared_buffer_bytes(const PackedPlan& plan);
std::int64_t parts(const PackedPlan& plan);
/// How many values are added to one sum, one after another: those of a block, and then the sums of blocks.
inline std::int64_t additions(const PackedPlan& plan) { return slots(plan) + ceil_div(plan.inner, plan.inner_block); }

/// One stage of parts(plan) parts.
PreparedKernel prepare(PackedPlan plan);

/// "packed 14x32 (AVX-512)"
std::string describe(const PackedPlan& plan);

}  // namespace einrel::contraction
