#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernel/products/bf16_pair.h"
#include "kernel/products/combination.h"

namespace einrel::contraction {

/// Of so many slots a tile fetches ahead at a time.
inline constexpr std::size_t fetched_slots = 16;

/// What comes after a tile and is fetched while it is computed: for every 16 slots the next 16 elements of each line.
template <class Packed>
struct Ahead {
  const Packed* begin = nullptr;
  std::int64_t lines = 0;
  std::int64_t stride = 0;  ///< of elements, from line to line
};

/// One tile of the result: Z[r, l] = reduce over p of join(A[r, p], B[p, l]). B is packed, and A is packed or lies
/// where it is. Panels hold Packed, which is T, or pairs of bf16 of which both products are added.
template <class T, class Packed = T>
struct Tile {
  const Packed* a = nullptr;  ///< A[r, p] at a[p * rows of the kernel + r], unless the kernel says otherwise
  std::int64_t a_row = 0;     ///< of rows in place: A[r, p] at a[r * a_row + p]
  const std::int64_t* a_inner = nullptr;  ///< of windows: A[r, p] at a[r * a_row + a_inner[p]]
  const Packed* b = nullptr;              ///< B[p, l] at b[p * lanes of the kernel + l]
  std::int64_t inner = 0;                 ///< slots
  T* z = nullptr;                         ///< Z[r, l] at z[z_rows[r] + l]
  const std::int64_t* z_rows = nullptr;   ///< an offset for every row of the kernel
  std::int64_t rows = 0;                  ///< how many of the kernel's rows and lanes are stored
  std::int64_t lanes = 0;
  T scale = 1;              ///< of sums: the tile is multiplied with it
  bool accumulate = false;  ///< Z is reduced with the tile, instead of replaced by it
  Ahead<Packed> next_rows;
  Ahead<Packed> next_columns;
};

template <class T, class Packed = T>
using TileFunction = void (*)(const Tile<T, Packed>&);

inline constexpr std::size_t most_tile_rows = 32;

/// The kernels for one combination and element type on this processor.
template <class T, class Packed = T>
struct TileKernels {
  std::int64_t rows = 0;    ///< of the largest kernel
  std::int64_t vector = 0;  ///< lanes of one vector; kernels have one or two vectors of lanes
  /// By rows - 1 and vectors - 1. Combinations that are not worth so much code have only the largest, matrix units
  /// whole blocks.
  std::array<std::array<TileFunction<T, Packed>, 2>, most_tile_rows> functions{};
  /// The same, of rows of A that are read where they lie; null where there is none.
  std::array<std::array<TileFunction<T, Packed>, 2>, most_tile_rows> in_place{};
  /// The same, of windows: an element of A may belong to many rows and inner positions. All rows and lanes are stored,
  /// and nothing is fetched ahead: that would take 20 % longer with AVX2. Null but for sums of products of floats.
  std::array<std::array<TileFunction<T, Packed>, 2>, most_tile_rows> windows{};
  /// Whole blocks of A hold the slots of each row side by side instead of the rows of each slot: A[r, p] at
  /// a[(p / 16 * rows + r) * 16 + p % 16]. What is left behind them stays as it is.
  bool turned = false;
  /// To be called before and after tiles, on the thread that computes them; null where there is nothing to do.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
  const char* instructions = "";  ///< "AVX-512"
};

/// `careful` is needed where a NaN may occur, of a combination with max or min; the results are the same bits.
template <class T>
const TileKernels<T>& tile_kernels(Combination combination, bool careful);

/// The kernels for sums of products of bf16, or null where the processor has no instruction for them. It takes numbers
/// below the normal range for 0, in the panels and among the sums, so that a sum of n products is up to n * 2^-126 off;
/// where panels hold such numbers, use the kernels for `subnormals`: of the same shape, and at the speed of f32.
const TileKernels<float, BFloat16Pair>* bf16_kernels(bool subnormals);
/// The same in vectors: what bf16_kernels gives where there is no matrix unit.
const TileKernels<float, BFloat16Pair>* bf16_vector_kernels(bool subnormals);

}  // namespace einrel::contraction
