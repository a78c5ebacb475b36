// The kernels of tiles of packed operands, of rows in place and of windows.

#include "kernel/products/tile.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/products/tile.cpp"
#include "hwy/foreach_target.h"
#include "kernel/products/prefetching.h"
#include "kernel/products/vector_ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::contraction::HWY_NAMESPACE {
namespace {

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

template <class T>
const TileKernels<T>& kernels_for(Combination combination, bool careful) {
  const TileKernels<T>* found = nullptr;
  with_combination(combination,
                   [&]<Join join, Reduce reduce>() { found = &kernels_with_care<T, join, reduce>(careful); });
  invariant(found != nullptr, "a combination without kernels is refused");
  return *found;
}

const TileKernels<float>& tiles_f32(Combination combination, bool careful) {
  return kernels_for<float>(combination, careful);
}
const TileKernels<double>& tiles_f64(Combination combination, bool careful) {
  return kernels_for<double>(combination, careful);
}
const TileKernels<std::int32_t>& tiles_i32(Combination combination, bool careful) {
  return kernels_for<std::int32_t>(combination, careful);
}
const TileKernels<std::int64_t>& tiles_i64(Combination combination, bool careful) {
  return kernels_for<std::int64_t>(combination, careful);
}

}  // namespace
}  // namespace einrel::contraction::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einrel::contraction {

HWY_EXPORT(tiles_f32);
HWY_EXPORT(tiles_f64);
HWY_EXPORT(tiles_i32);
HWY_EXPORT(tiles_i64);

template <>
const TileKernels<float>& tile_kernels(Combination combination, bool careful) {
  return HWY_DYNAMIC_DISPATCH(tiles_f32)(combination, careful);
}
template <>
const TileKernels<double>& tile_kernels(Combination combination, bool careful) {
  return HWY_DYNAMIC_DISPATCH(tiles_f64)(combination, careful);
}
template <>
const TileKernels<std::int32_t>& tile_kernels(Combination combination, bool careful) {
  return HWY_DYNAMIC_DISPATCH(tiles_i32)(combination, careful);
}
template <>
const TileKernels<std::int64_t>& tile_kernels(Combination combination, bool careful) {
  return HWY_DYNAMIC_DISPATCH(tiles_i64)(combination, careful);
}

}  // namespace einrel::contraction
#endif
