#include "kernel/products/direct_tile.h"

#include <utility>

#include "kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/products/direct_tile.cpp"
#include "hwy/foreach_target.h"
#include "kernel/products/vector_ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::contraction::HWY_NAMESPACE {
namespace {

/// One row of B's lanes, or of A's: all vectors full but the last.
template <class D, std::size_t vectors>
HWY_INLINE void load_lanes(const hn::TFromD<D>* from, const FirstLanes<D>& last, hn::Vec<D> (&lanes)[vectors]) {
  const D d;
  HWY_UNROLL(4)
  for (std::size_t v = 0; v + 1 < vectors; ++v) lanes[v] = hn::LoadU(d, from + v * hn::MaxLanes(d));
  lanes[vectors - 1] = last.load(from + (vectors - 1) * hn::MaxLanes(d));
}

template <class D, std::size_t vectors>
HWY_INLINE void store_lanes(hn::Vec<D> (&sums)[vectors], const FirstLanes<D>& last, hn::Vec<D> scale, bool accumulate,
                            hn::TFromD<D>* z) {
  const D d;
  HWY_UNROLL(4)
  for (std::size_t v = 0; v < vectors; ++v) sums[v] = hn::Mul(sums[v], scale);
  if (accumulate) {
    hn::Vec<D> before[vectors];
    load_lanes(z, last, before);
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < vectors; ++v) sums[v] = hn::Add(before[v], sums[v]);
  }
  HWY_UNROLL(4)
  for (std::size_t v = 0; v + 1 < vectors; ++v) hn::StoreU(sums[v], d, z + v * hn::MaxLanes(d));
  last.store(sums[vectors - 1], z + (vectors - 1) * hn::MaxLanes(d));
}

/// What the next block of inner positions reads, which processors do not foresee where blocks are short.
template <class D, std::size_t vectors>
HWY_INLINE void fetch_soon(const hn::TFromD<D>* a, const hn::TFromD<D>* b) {
  __builtin_prefetch(a, 0, 3);
  HWY_UNROLL(4)
  for (std::size_t v = 0; v < vectors; ++v) __builtin_prefetch(b + v * hn::MaxLanes(D()), 0, 3);
}

// Loops around values that must stay in registers: as functions of their own they would be spilled.
// NOLINTBEGIN(readability-function-cognitive-complexity)
template <class D, std::size_t rows, std::size_t vectors, bool a_by_lanes, bool fetches = true>
void direct_tiles(const DirectTiles<hn::TFromD<D>>& given) {
  using T = hn::TFromD<D>;
  const D d;
  const DirectTiles<T> task = given;  // a copy, since stores through `z` might change what is given
  const FirstLanes<D> last(task.lanes - static_cast<std::int64_t>((vectors - 1) * hn::MaxLanes(d)));
  const hn::Vec<D> scale = hn::Set(d, task.scale);
  const T* a_tile = task.a;
  const T* b_tile = task.b;
  T* z_tile = task.z;
  // Rows of A that follow one another are read on from behind these ones.
  const bool follows = !a_by_lanes && task.a_inner == 1 && task.a_row == task.inner;
  const std::int64_t soon_begin = follows ? static_cast<std::int64_t>(rows) * task.a_row : task.inner * task.a_inner;
  const std::int64_t soon_step = follows ? static_cast<std::int64_t>(rows) : task.a_inner;
  for (std::int64_t t = 0; t < task.count; ++t) {
    hn::Vec<D> sums[rows][vectors];
    HWY_UNROLL(14)
    for (std::size_t r = 0; r < rows; ++r) {
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < vectors; ++v) sums[r][v] = hn::Zero(d);
    }
    for (std::int64_t o = 0; o < task.outer; ++o) {
      const T* const a = a_tile + task.a_outer[o];
      const T* b = b_tile + task.b_outer[o];
      const T* soon = a + soon_begin;
      // One address for three rows: as many as there are registers for.
      constexpr std::size_t groups = (rows + 2) / 3;
      const T* a_rows[groups];
      HWY_UNROLL(5)
      for (std::size_t g = 0; g < groups; ++g) a_rows[g] = a + static_cast<std::int64_t>(3 * g) * task.a_row;
      for (std::int64_t left = task.inner; left > 0; --left, b += task.b_inner, soon += soon_step) {
        hn::Vec<D> b_lanes[vectors];
        load_lanes(b, last, b_lanes);
        if constexpr (fetches) fetch_soon<D, vectors>(soon, b + task.b_ahead);
        HWY_UNROLL(14)
        for (std::size_t r = 0; r < rows; ++r) {
          const T* const a_row = a_rows[r / 3] + static_cast<std::int64_t>(r % 3) * task.a_row;
          hn::Vec<D> a_lanes[vectors];
          if constexpr (a_by_lanes) {
            load_lanes(a_row, last, a_lanes);
          } else {
            HWY_UNROLL(4)
            for (std::size_t v = 0; v < vectors; ++v) a_lanes[v] = hn::Set(d, *a_row);
          }
          HWY_UNROLL(4)
          for (std::size_t v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(a_lanes[v], b_lanes[v], sums[r][v]);
        }
        HWY_UNROLL(5)
        for (std::size_t g = 0; g < groups; ++g) a_rows[g] += task.a_inner;
      }
    }
    T* z = z_tile;
    HWY_UNROLL(14)
    for (std::size_t r = 0; r < rows; ++r, z += task.z_row) store_lanes(sums[r], last, scale, task.accumulate, z);
    a_tile += task.a_tile;
    b_tile += task.b_tile;
    z_tile += task.z_tile;
  }
}
// NOLINTEND(readability-function-cognitive-complexity)

template <class T, std::size_t rows>
void stream_tiles(const DirectTiles<T>& given) {
  const Tag<T> d;
  constexpr std::size_t vectors = stream_vectors;
  const DirectTiles<T> task = given;
  const Vector<T> scale = hn::Set(d, task.scale);
  const FirstLanes<Tag<T>> last(static_cast<std::int64_t>(vector_lanes<T>));
  const T* a = task.a + task.a_outer[0];
  const T* b = task.b + task.b_outer[0];
  T* z_tile = task.z;
  for (std::int64_t t = 0; t < task.count; ++t, a += task.a_tile, b += task.b_tile, z_tile += task.z_tile) {
    Vector<T> sums[rows][vectors];
    HWY_UNROLL(2)
    for (std::size_t r = 0; r < rows; ++r) {
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < vectors; ++v) sums[r][v] = hn::Zero(d);
    }
    HWY_UNROLL(8)
    for (std::int64_t p = 0; p < stream_inner; ++p) {
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < vectors; ++v) {
        const Vector<T> b_lanes = hn::LoadU(d, b + p * task.b_inner + v * vector_lanes<T>);
        HWY_UNROLL(2)
        for (std::size_t r = 0; r < rows; ++r) {
          sums[r][v] = hn::MulAdd(hn::Set(d, a[static_cast<std::int64_t>(r) * task.a_row + p * task.a_inner]), b_lanes,
                                  sums[r][v]);
        }
      }
    }
    T* z = z_tile;
    HWY_UNROLL(2)
    for (std::size_t r = 0; r < rows; ++r, z += task.z_row) store_lanes(sums[r], last, scale, task.accumulate, z);
  }
}

template <class T, bool a_by_lanes>
void outer_rows(const DirectTiles<T>& given) {
  const Tag<T> d;
  constexpr auto lanes = static_cast<std::int64_t>(vector_lanes<T>);
  const DirectTiles<T> task = given;
  const std::int64_t whole = task.lanes / lanes * lanes;
  const FirstLanes<Tag<T>> last(task.lanes - whole);
  const T* a = task.a;
  const T* b = task.b;
  T* z = task.z;
  for (std::int64_t t = 0; t < task.count; ++t, a += task.a_tile, b += task.b_tile, z += task.z_tile) {
    const Vector<T> constant = hn::Set(d, *a);
    const auto product = [&](std::int64_t l) {
      return hn::Mul(a_by_lanes ? hn::LoadU(d, a + l) : constant, hn::LoadU(d, b + l));
    };
    std::int64_t l = 0;
    for (; l + 4 * lanes <= whole; l += 4 * lanes) {
      HWY_UNROLL(4)
      for (std::int64_t v = l; v < l + 4 * lanes; v += lanes) hn::StoreU(product(v), d, z + v);
    }
    for (; l < whole; l += lanes) hn::StoreU(product(l), d, z + l);
    if (l < task.lanes) last.store(hn::Mul(a_by_lanes ? last.load(a + l) : constant, last.load(b + l)), z + l);
  }
}

#if HWY_TARGET == HWY_SCALAR
constexpr DirectFunction<float> quad_kernel = nullptr;
#else
/// Several rows of 4 lanes in each vector.
void quads(const DirectTiles<float>& given) {
  const Tag<float> d;
  constexpr std::size_t lanes = vector_lanes<float>;
  const DirectTiles<float> task = given;
  const Vector<float> scale = hn::Set(d, task.scale);
  const float* a = task.a + task.a_outer[0];
  const float* b = task.b + task.b_outer[0];
  float* z = task.z;
  for (std::int64_t t = 0; t < task.count; ++t, a += task.a_tile, b += task.b_tile, z += task.z_tile) {
    const Vector<float> b0 = hn::LoadDup128(d, b);
    const Vector<float> b1 = hn::LoadDup128(d, b + task.b_inner);
    const Vector<float> b2 = hn::LoadDup128(d, b + 2 * task.b_inner);
    const Vector<float> b3 = hn::LoadDup128(d, b + 3 * task.b_inner);
    HWY_UNROLL(4)
    for (std::size_t i = 0; i < 16; i += lanes) {
      const Vector<float> rows = hn::LoadU(d, a + i);
      Vector<float> sums = hn::Mul(hn::Broadcast<0>(rows), b0);
      sums = hn::MulAdd(hn::Broadcast<1>(rows), b1, sums);
      sums = hn::MulAdd(hn::Broadcast<2>(rows), b2, sums);
      sums = hn::Mul(hn::MulAdd(hn::Broadcast<3>(rows), b3, sums), scale);
      if (task.accumulate) sums = hn::Add(hn::LoadU(d, z + i), sums);
      hn::StoreU(sums, d, z + i);
    }
  }
}
constexpr DirectFunction<float> quad_kernel = quads;
#endif

template <class T, std::size_t row>
constexpr std::array<DirectFunction<T>, 5> kernels_of_rows() {
  std::array<DirectFunction<T>, 5> functions{
      direct_tiles<hn::CappedTag<T, 4>, row + 1, 1, false>, direct_tiles<hn::CappedTag<T, 8>, row + 1, 1, false>,
      direct_tiles<Tag<T>, row + 1, 1, false>, direct_tiles<Tag<T>, row + 1, 2, false>};
  if constexpr ((row + 1) * 4 <= 2 * tile_rows) functions[4] = direct_tiles<Tag<T>, row + 1, 4, false>;
  return functions;
}

template <class T, std::size_t... row>
DirectKernels<T> kernels_of(std::index_sequence<row...>) {
  DirectKernels<T> kernels;
  kernels.vector = vector_lanes<T>;
  kernels.rows = sizeof...(row);
  kernels.instructions = instruction_set();
  ((kernels.constant_a[row] = kernels_of_rows<T, row>()), ...);
  ((kernels.cached[row] = {direct_tiles<Tag<T>, row + 1, 1, false, false>,
                           direct_tiles<Tag<T>, row + 1, 2, false, false>}),
   ...);
  kernels.a_by_lanes = {{{direct_tiles<Tag<T>, 1, 1, true>, direct_tiles<Tag<T>, 1, 2, true>},
                         {direct_tiles<Tag<T>, 2, 1, true>, direct_tiles<Tag<T>, 2, 2, true>},
                         {direct_tiles<Tag<T>, 3, 1, true>, direct_tiles<Tag<T>, 3, 2, true>},
                         {direct_tiles<Tag<T>, 4, 1, true>, direct_tiles<Tag<T>, 4, 2, true>}}};
  return kernels;
}

template <class T>
DirectKernels<T> all_kernels() {
  DirectKernels<T> kernels = kernels_of<T>(std::make_index_sequence<tile_rows>());
  if constexpr (sizeof(T) == 4) kernels.quads = quad_kernel;
  kernels.streams = {stream_tiles<T, 1>, stream_tiles<T, 2>};
  kernels.outer = outer_rows<T, false>;
  kernels.outer_by_lanes = outer_rows<T, true>;
  return kernels;
}

const DirectKernels<float>& direct_f32() {
  static const DirectKernels<float> kernels = all_kernels<float>();
  return kernels;
}
const DirectKernels<double>& direct_f64() {
  static const DirectKernels<double> kernels = all_kernels<double>();
  return kernels;
}

}  // namespace
}  // namespace einrel::contraction::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einrel::contraction {

HWY_EXPORT(direct_f32);
HWY_EXPORT(direct_f64);

template <>
const DirectKernels<float>& direct_kernels() {
  return HWY_DYNAMIC_DISPATCH(direct_f32)();
}

template <>
const DirectKernels<double>& direct_kernels() {
  return HWY_DYNAMIC_DISPATCH(direct_f64)();
}

}  // namespace einrel::contraction
#endif
