// The kernels of tiles of packed operands, of rows in place and of windows. Highway includes this once for each
// instruction set.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernel/cpu/contraction/prefetching.h"
#include "kernel/cpu/contraction/tile.h"
#include "kernel/cpu/contraction/vector_ops-inl.h"

#if defined(EINREL_CONTRACTION_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef EINREL_CONTRACTION_TILE_INL_H
#undef EINREL_CONTRACTION_TILE_INL_H
#else
#define EINREL_CONTRACTION_TILE_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace einrel::contraction::HWY_NAMESPACE {

/// What a tile leaves in Z, of one vector.
template <Reduce reduce, class V, class T>
HWY_INLINE V finished(V tile, V before, const Tile<T>& task) {
  const hn::DFromV<V> d;
  if constexpr (reduce == Reduce::sum && hwy::IsFloat<T>()) tile = hn::Mul(tile, hn::Set(d, task.scale));
  return task.accumulate ? reduced<reduce, true>(before, tile) : tile;
}

template <Reduce reduce, class T, std::size_t rows, std::size_t vectors>
HWY_INLINE void store_whole(Vector<T> (&tile)[rows][vectors], const Tile<T>& task) {
  const Tag<T> d;
  HWY_UNROLL(14)
  for (std::size_t r = 0; r < rows; ++r) {
    T* const row = task.z + task.z_rows[r];
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < vectors; ++v) {
      T* const z = row + v * vector_lanes<T>;
      const Vector<T> before = task.accumulate ? hn::LoadU(d, z) : tile[r][v];
      hn::StoreU(finished<reduce>(tile[r][v], before, task), d, z);
    }
  }
}

/// Some of the rows and lanes only, through memory.
template <Reduce reduce, class T, std::size_t rows, std::size_t vectors>
HWY_NOINLINE void store_some(const T* tile, const Tile<T>& task) {
  const hn::CappedTag<T, 1> one;
  constexpr std::int64_t stride = vectors * vector_lanes<T>;
  for (std::int64_t r = 0; r < task.rows; ++r) {
    T* const z = task.z + task.z_rows[r];
    for (std::int64_t l = 0; l < task.lanes; ++l) {
      const auto value = hn::LoadU(one, tile + r * stride + l);
      const auto before = task.accumulate ? hn::LoadU(one, z + l) : value;
      hn::StoreU(finished<reduce>(value, before, task), one, z + l);
    }
  }
}

/// Where a tile finds its rows of A.
enum class RowsAt : std::uint8_t { panel, in_place, windows };

template <RowsAt place, std::size_t rows, class T>
HWY_INLINE auto rows_of(const Tile<T>& task) {
  if constexpr (place == RowsAt::windows) {
    return RowsOfWindows<T, rows>(task.a, task.a_row, task.a_inner);
  } else if constexpr (place == RowsAt::in_place) {
    return RowsInPlace<T, rows>(task.a, task.a_row);
  } else {
    return RowsOfPanel<T, rows>(task.a);
  }
}

template <class T, Join join, Reduce reduce, bool careful, std::size_t rows, std::size_t vectors,
          RowsAt place = RowsAt::panel>
void tile_of(const Tile<T>& task) {
  const Tag<T> d;
  constexpr std::size_t lanes = vector_lanes<T>;
  Vector<T> tile[rows][vectors];
  HWY_UNROLL(14)
  for (std::size_t r = 0; r < rows; ++r) {
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < vectors; ++v) tile[r][v] = hn::Set(d, identity<T, reduce>());
  }
  auto a = rows_of<place, rows>(task);
  const T* b = task.b;
  if constexpr (place == RowsAt::windows) {  // whole tiles, of an image and a panel that are in the caches
    add_slots<T, join, reduce, careful>(tile, a, b, task.inner);
    return store_whole<reduce, T, rows, vectors>(tile, task);
  }
  Prefetching<T, T, rows, vectors, lanes> prefetching(task);
  for (std::int64_t left = task.inner; left > 0; left -= std::int64_t{fetched_slots}) {
    prefetching.advance();
    if constexpr (place == RowsAt::in_place) {
      if (left > std::int64_t{fetched_slots}) a.fetch(fetched_slots);
    }
    add_slots<T, join, reduce, careful>(tile, a, b, std::min(left, std::int64_t{fetched_slots}));
  }
  if (task.rows == std::int64_t{rows} && task.lanes == std::int64_t{vectors * lanes}) {
    store_whole<reduce, T, rows, vectors>(tile, task);
    return;
  }
  HWY_ALIGN T stored[rows * vectors * lanes];
  HWY_UNROLL(14)
  for (std::size_t r = 0; r < rows; ++r) {
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < vectors; ++v) hn::StoreU(tile[r][v], d, stored + (r * vectors + v) * lanes);
  }
  store_some<reduce, T, rows, vectors>(stored, task);
}

template <class T, Join join, Reduce reduce, bool careful, std::size_t... row>
void add_kernels_of_fewer_rows(TileKernels<T>& kernels, std::index_sequence<row...>) {
  ((kernels.functions[row] = {tile_of<T, join, reduce, careful, row + 1, 1>,
                              tile_of<T, join, reduce, careful, row + 1, 2>}),
   ...);
  ((kernels.in_place[row] = {tile_of<T, join, reduce, careful, row + 1, 1, RowsAt::in_place>,
                             tile_of<T, join, reduce, careful, row + 1, 2, RowsAt::in_place>}),
   ...);
  ((kernels.windows[row] = {tile_of<T, join, reduce, careful, row + 1, 1, RowsAt::windows>,
                            tile_of<T, join, reduce, careful, row + 1, 2, RowsAt::windows>}),
   ...);
}

template <class T, Join join, Reduce reduce, bool careful>
TileKernels<T> kernels_of() {
  TileKernels<T> kernels;
  kernels.rows = tile_rows;
  kernels.vector = vector_lanes<T>;
  kernels.instructions = instruction_set();
  if constexpr (join == Join::multiply && reduce == Reduce::sum && hwy::IsFloat<T>()) {
    add_kernels_of_fewer_rows<T, join, reduce, careful>(kernels, std::make_index_sequence<tile_rows>());
  } else {
    kernels.functions[tile_rows - 1][1] = tile_of<T, join, reduce, careful, tile_rows, 2>;
  }
  return kernels;
}

template <class T, Join join, Reduce reduce>
const TileKernels<T>& kernels_with_care(bool careful) {
  static const TileKernels<T> quick = kernels_of<T, join, reduce, false>();
  if constexpr (hwy::IsFloat<T>() && needs_care(join, reduce)) {
    static const TileKernels<T> slow = kernels_of<T, join, reduce, true>();
    if (careful) return slow;
  }
  return quick;
}

template <class T, Join join>
const TileKernels<T>& kernels_for_reduce(Reduce reduce, bool careful) {
  switch (reduce) {
    case Reduce::sum: return kernels_with_care<T, join, Reduce::sum>(careful);
    case Reduce::max: return kernels_with_care<T, join, Reduce::max>(careful);
    case Reduce::min: break;
  }
  return kernels_with_care<T, join, Reduce::min>(careful);
}

template <class T>
const TileKernels<T>& kernels_for(Combination combination, bool careful) {
  switch (combination.join) {
    case Join::multiply: return kernels_for_reduce<T, Join::multiply>(combination.reduce, careful);
    case Join::add: return kernels_for_reduce<T, Join::add>(combination.reduce, careful);
    case Join::square_difference: return kernels_for_reduce<T, Join::square_difference>(combination.reduce, careful);
    case Join::absolute_difference:
      return kernels_for_reduce<T, Join::absolute_difference>(combination.reduce, careful);
    case Join::maximum: return kernels_for_reduce<T, Join::maximum>(combination.reduce, careful);
    case Join::minimum: break;
  }
  return kernels_for_reduce<T, Join::minimum>(combination.reduce, careful);
}

}  // namespace einrel::contraction::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
