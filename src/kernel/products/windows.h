#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/products/product.h"
#include "kernel/products/window_image.h"

namespace einrel::contraction {

/// Up to where the parts of a product are cut: numbers of the algorithm, as BlockSizes.
struct WindowSizes {
  std::int64_t inner_bytes = 3072;                  ///< of one line of B: a panel stays in the second-level cache
  std::int64_t image_bytes = 2 << 20;               ///< of one part
  std::int64_t workspace_bytes = 7 << 20;           ///< of one part
  double part_seconds = 1.5 * packed_part_seconds;  ///< modelled, of a part at least
};

/// How a sum of products of overlapping windows is computed: each part copies what its windows cover once, and tiles
/// read their rows there; columns are packed.
struct WindowPlan {
  Product product;  ///< tiles run along the last loop of its rows
  ImageAxes axes;
  std::int64_t batch = 1;
  std::int64_t columns = 1;
  std::int64_t inner = 1;

  std::int64_t tile_rows = 1;  ///< of the highest tile
  std::int64_t tile_lanes = 1;
  std::int64_t inner_block = 1;
  /// Each part computes one position of the batch and so many positions of every row loop and columns at most.
  std::vector<std::int64_t> part_rows;
  std::int64_t part_columns = 1;
  ImageShape shape;  ///< of a part's image

  double seconds = 0;  ///< modelled, on one thread
};

/// The cheapest choice of loops, or why there is none.
std::variant<WindowPlan, std::string> plan_windows(const Product& product, const WindowSizes& sizes = {});

/// The workspace of one part, as offsets in bytes.
struct WindowWorkspace {
  std::int64_t panel = 0;       ///< of columns, behind the image
  std::int64_t block = 0;       ///< of the result
  std::int64_t transposed = 0;  ///< some rows and a panel of columns of it, on their way
  std::int64_t total = 0;
};
WindowWorkspace workspace_of(const WindowPlan& plan);

/// How finished values get into the result.
enum class WindowStore : std::uint8_t {
  plain,       ///< columns lie side by side in it, or neither columns nor rows
  transposed,  ///< the rows of a tile lie side by side
  rearranged   ///< other rows do: transposed when all rows are finished
};
WindowStore store_of(const WindowPlan& plan);
/// So many rows at most are transposed at a time.
inline constexpr std::int64_t rows_at_once = 256;

std::int64_t own_bytes(const WindowPlan& plan);
inline std::int64_t shared_bytes(const WindowPlan&) { return 0; }
std::int64_t parts(const WindowPlan& plan);
/// As of packed plans.
inline std::int64_t additions(const WindowPlan& plan) {
  return plan.inner_block + ceil_div(plan.inner, plan.inner_block);
}
PreparedKernel prepare(WindowPlan plan);

/// "windows 14x32 (AVX-512)"
std::string describe(const WindowPlan& plan);

}  // namespace einrel::contraction
