#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace einrel::contraction {

/// Tiles of a sum of products, Z[r, l] = sum over o and p of A[r, o, p] * B[o, p, l], of operands that are read where
/// they lie: of `count` tiles, each some elements further on than the one before, all are computed in one call.
template <class T>
struct DirectTiles {
  const T* a = nullptr;  ///< A[r, o, p] at a[r * a_row + a_outer[o] + p * a_inner]; by lanes, element l at + l
  const T* b = nullptr;  ///< B[o, p, l] at b[b_outer[o] + p * b_inner + l]
  T* z = nullptr;        ///< Z[r, l] at z[r * z_row + l]
  std::int64_t a_row = 0;
  std::int64_t z_row = 0;
  std::int64_t a_inner = 0;
  std::int64_t b_inner = 0;
  std::int64_t inner = 1;
  const std::int64_t* a_outer = nullptr;
  const std::int64_t* b_outer = nullptr;
  std::int64_t outer = 1;
  std::int64_t lanes = 0;  ///< of each tile; all vectors of the kernel but the last are full
  std::int64_t count = 1;
  std::int64_t a_tile = 0;
  std::int64_t b_tile = 0;
  std::int64_t z_tile = 0;
  T scale = 1;
  bool accumulate = false;   ///< Z += the sums, instead of Z = the sums
  std::int64_t b_ahead = 0;  ///< how far behind what it reads of B is what should be fetched
};

template <class T>
using DirectFunction = void (*)(const DirectTiles<T>&);

inline constexpr std::size_t most_direct_rows = 14;
inline constexpr std::int64_t stream_inner = 8;
inline constexpr std::size_t stream_vectors = 4;

/// T is float or double.
template <class T>
struct DirectKernels {
  std::int64_t vector = 0;  ///< lanes of one vector
  /// A is constant along the lanes. By rows - 1 and the lanes: at most 4, 8, or 1, 2 or 4 whole vectors. Small vectors
  /// are faster than large ones in part, which may reach over two cache lines.
  std::int64_t rows = 0;
  std::array<std::array<DirectFunction<T>, 5>, most_direct_rows> constant_a{};
  /// The same of 1 or 2 whole vectors, for operands in the first or second cache: nothing is fetched ahead, which would
  /// make products of 8 or 16 rows take up to 44 % longer with AVX2.
  std::array<std::array<DirectFunction<T>, 2>, most_direct_rows> cached{};
  /// A runs along the lanes as B does. Up to 4 rows, 1 or 2 vectors.
  std::array<std::array<DirectFunction<T>, 2>, 4> a_by_lanes{};
  /// 4 rows, lanes and inner positions each (outer = 1, a_row = z_row = 4, a_inner = 1): the smallest products that
  /// come in large batches, and too little work for the others: hundreds of them take 2 to 3.5 times as long. May be
  /// null.
  DirectFunction<T> quads = nullptr;
  /// Of 1 or 2 rows, stream_inner inner positions (outer = 1) and stream_vectors whole vectors of lanes, along which A
  /// is constant: a large B is read by a load instruction for each position and vector, from whose steps the processor
  /// foresees it.
  std::array<DirectFunction<T>, 2> streams{};
  /// Z[t, l] = A[t] * B[l] for `count` rows of any number of lanes, each product as it is: no sum makes +0 of -0. The
  /// second: A runs along the lanes as B does.
  DirectFunction<T> outer = nullptr;
  DirectFunction<T> outer_by_lanes = nullptr;
  const char* instructions = "";
};

template <class T>
const DirectKernels<T>& direct_kernels();

}  // namespace einrel::contraction
