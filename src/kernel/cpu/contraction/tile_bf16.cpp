#include "kernel/cpu/targets.h"
// What follows must not come before it.
#include "hwy/base.h"
#include "kernel/cpu/contraction/tile.h"

#if HWY_ARCH_X86_64

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/contraction/tile_bf16.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernel/cpu/contraction/prefetching.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::contraction::HWY_NAMESPACE {
namespace {

/// Tests let kernels see fewer instruction sets than there are.
bool is_best_set() { return HWY_TARGET == ((HWY_TARGETS & HWY_AVX3) != 0 ? HWY_AVX3 : HWY_AVX2); }

}  // namespace
}  // namespace einrel::contraction::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <immintrin.h>

#include <algorithm>
#include <utility>

// Highway has no vectors for the instruction: it is called by its own name, in functions compiled for it.
#define EINREL_TARGET_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace einrel::contraction {
namespace {

HWY_EXPORT(is_best_set);

constexpr std::size_t lanes = 16;

/// The low or high halves of pairs, as f32.
template <bool high>
EINREL_TARGET_BF16 HWY_INLINE __m512 halves(__m512i pairs) {
  constexpr __mmask16 all = 0xFFFF;  // GCC 12 warns of the form without a mask
  return _mm512_castsi512_ps(high ? _mm512_and_si512(pairs, _mm512_set1_epi32(-0x10000))
                                  : _mm512_maskz_slli_epi32(all, pairs, 16));
}

/// Adds both products of each pair at one slot.
template <std::size_t rows, std::size_t vectors>
EINREL_TARGET_BF16 HWY_INLINE void add_pairs(__m512 (&tile)[rows][vectors], const BFloat16Pair* a,
                                             const BFloat16Pair* b) {
  __m512i b_pairs[vectors];
  HWY_UNROLL(2)
  for (std::size_t v = 0; v < vectors; ++v) b_pairs[v] = _mm512_loadu_si512(b + v * lanes);
  HWY_UNROLL(14)
  for (std::size_t r = 0; r < rows; ++r) {
    const __m512i a_pairs = _mm512_set1_epi32(static_cast<int>(a[r]));
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < vectors; ++v) {
      tile[r][v] =
          _mm512_dpbf16_ps(tile[r][v], reinterpret_cast<__m512bh>(a_pairs), reinterpret_cast<__m512bh>(b_pairs[v]));
    }
  }
}

/// Adds one product of each pair at one slot, in f32: nothing is taken for 0.
template <bool high, std::size_t rows, std::size_t vectors>
EINREL_TARGET_BF16 HWY_INLINE void add_halves(__m512 (&tile)[rows][vectors], const BFloat16Pair* a,
                                              const BFloat16Pair* b) {
  __m512 b_lanes[vectors];
  HWY_UNROLL(2)
  for (std::size_t v = 0; v < vectors; ++v) b_lanes[v] = halves<high>(_mm512_loadu_si512(b + v * lanes));
  HWY_UNROLL(14)
  for (std::size_t r = 0; r < rows; ++r) {
    const __m512 a_lanes = halves<high>(_mm512_set1_epi32(static_cast<int>(a[r])));
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < vectors; ++v) tile[r][v] = _mm512_fmadd_ps(a_lanes, b_lanes[v], tile[r][v]);
  }
}

/// Those of the tile's rows and lanes that exist.
template <std::size_t rows, std::size_t vectors>
EINREL_TARGET_BF16 HWY_INLINE void store(const __m512 (&tile)[rows][vectors], const Tile<float, BFloat16Pair>& task) {
  const __m512 scale = _mm512_set1_ps(task.scale);
  HWY_UNROLL(2)
  for (std::size_t v = 0; v < vectors; ++v) {
    const std::int64_t begin = static_cast<std::int64_t>(v * lanes);
    const auto count = static_cast<unsigned>(std::clamp<std::int64_t>(task.lanes - begin, 0, lanes));
    const auto stored = static_cast<__mmask16>((1U << count) - 1);
    HWY_UNROLL(14)
    for (std::size_t r = 0; r < rows; ++r) {
      if (static_cast<std::int64_t>(r) >= task.rows) break;
      float* const z = task.z + task.z_rows[r] + begin;
      __m512 value = _mm512_mul_ps(tile[r][v], scale);
      if (task.accumulate) value = _mm512_add_ps(_mm512_maskz_loadu_ps(stored, z), value);
      _mm512_mask_storeu_ps(z, stored, value);
    }
  }
}

template <bool subnormals, std::size_t rows, std::size_t vectors>
EINREL_TARGET_BF16 void bf16_tile(const Tile<float, BFloat16Pair>& task) {
  __m512 tile[rows][vectors];
  HWY_UNROLL(14)
  for (std::size_t r = 0; r < rows; ++r) {
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < vectors; ++v) tile[r][v] = _mm512_setzero_ps();
  }
  const BFloat16Pair* a = task.a;
  const BFloat16Pair* b = task.b;
  Prefetching<float, BFloat16Pair, rows, vectors, lanes> prefetching(task);
  for (std::int64_t left = task.inner; left > 0;) {
    prefetching.advance();
    const std::int64_t stop = left > 16 ? left - 16 : 0;
    HWY_UNROLL(2)
    for (; left > stop; --left) {
      if constexpr (subnormals) {
        add_halves<false>(tile, a, b);
        add_halves<true>(tile, a, b);
      } else {
        add_pairs(tile, a, b);
      }
      a += rows;
      b += vectors * lanes;
    }
  }
  store(tile, task);
}

template <bool subnormals, std::size_t... row>
TileKernels<float, BFloat16Pair> kernels_of(std::index_sequence<row...>) {
  TileKernels<float, BFloat16Pair> kernels;
  kernels.rows = sizeof...(row);
  kernels.vector = lanes;
  kernels.instructions = "AVX-512 BF16";
  ((kernels.functions[row] = {bf16_tile<subnormals, row + 1, 1>, bf16_tile<subnormals, row + 1, 2>}), ...);
  return kernels;
}

}  // namespace

const TileKernels<float, BFloat16Pair>* bf16_kernels(bool subnormals) {
  static const TileKernels<float, BFloat16Pair> quick = kernels_of<false>(std::make_index_sequence<most_tile_rows>());
  static const TileKernels<float, BFloat16Pair> slow = kernels_of<true>(std::make_index_sequence<most_tile_rows>());
  static const bool has_instruction = __builtin_cpu_supports("avx512bf16") != 0;
  if (!has_instruction || !HWY_DYNAMIC_DISPATCH(is_best_set)()) return nullptr;
  return subnormals ? &slow : &quick;
}

}  // namespace einrel::contraction

#endif  // HWY_ONCE

#else

namespace einrel::contraction {

const TileKernels<float, BFloat16Pair>* bf16_kernels(bool /*subnormals*/) { return nullptr; }

}  // namespace einrel::contraction

#endif
