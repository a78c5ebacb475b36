#include "kernel/targets.h"
// What follows must not come before it.
#include "hwy/base.h"
#include "kernel/products/tile.h"

#if HWY_ARCH_X86_64

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/products/tile_bf16.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernel/products/prefetching.h"

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
#ifdef __linux__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <utility>

// Highway has no vectors for the instruction: it is called by its own name, in functions compiled for it.
#define EINREL_TARGET_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define EINREL_TARGET_AMX __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16")))

namespace einrel::contraction {
namespace {

HWY_EXPORT(is_best_set);

constexpr std::size_t lanes = 16;
constexpr std::size_t most_rows = 14;  ///< of tiles in vectors

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

/// Adds one product of each pair at one slot, in f32: nothing is taken for 0. The rows of A lie `step` pairs apart.
template <bool high, std::size_t rows, std::size_t vectors>
EINREL_TARGET_BF16 HWY_INLINE void add_halves(__m512 (&tile)[rows][vectors], const BFloat16Pair* a,
                                              const BFloat16Pair* b, std::size_t step = 1) {
  __m512 b_lanes[vectors];
  HWY_UNROLL(2)
  for (std::size_t v = 0; v < vectors; ++v) b_lanes[v] = halves<high>(_mm512_loadu_si512(b + v * lanes));
  HWY_UNROLL(14)
  for (std::size_t r = 0; r < rows; ++r) {
    const __m512 a_lanes = halves<high>(_mm512_set1_epi32(static_cast<int>(a[r * step])));
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < vectors; ++v) tile[r][v] = _mm512_fmadd_ps(a_lanes, b_lanes[v], tile[r][v]);
  }
}

/// Those of the lanes of vector v that exist.
HWY_INLINE __mmask16 lanes_of(std::size_t v, const Tile<float, BFloat16Pair>& task) {
  const auto before = static_cast<std::int64_t>(v * lanes);
  const auto count = static_cast<unsigned>(std::clamp<std::int64_t>(task.lanes - before, 0, lanes));
  return static_cast<__mmask16>((1U << count) - 1);
}

EINREL_TARGET_BF16 HWY_INLINE void store(__m512 value, __mmask16 stored, float* z,
                                         const Tile<float, BFloat16Pair>& task) {
  value = _mm512_mul_ps(value, _mm512_set1_ps(task.scale));
  if (task.accumulate) value = _mm512_add_ps(_mm512_maskz_loadu_ps(stored, z), value);
  _mm512_mask_storeu_ps(z, stored, value);
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
    const std::int64_t stop = std::max<std::int64_t>(0, left - std::int64_t{fetched_slots});
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
  HWY_UNROLL(2)
  for (std::size_t v = 0; v < vectors; ++v) {
    const __mmask16 stored = lanes_of(v, task);
    HWY_UNROLL(14)
    for (std::size_t r = 0; r < rows; ++r) {
      if (static_cast<std::int64_t>(r) >= task.rows) break;
      store(tile[r][v], stored, task.z + task.z_rows[r] + v * lanes, task);
    }
  }
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

// --- AMX: registers of 16 rows of 64 bytes, and an instruction that multiplies two of them ---

/// Rows and slots of a block, which one register holds.
constexpr std::size_t side = block_side;
constexpr std::size_t block_size = side * side;

/// As LDTILECFG reads it.
struct alignas(64) RegisterShapes {
  std::uint8_t palette = 1;
  std::uint8_t first_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(RegisterShapes) == 64);
constexpr RegisterShapes shapes;

/// What is written before is in memory: GCC 12 does not know that the loads of registers read it.
HWY_INLINE void finish_writing(const void* at) { __asm__ volatile("" : : "r"(at) : "memory"); }

/// Registers 0 to 3 hold the tile, 4 and 5 blocks of A, 6 and 7 of B.
template <std::size_t high, std::size_t vectors>
EINREL_TARGET_AMX HWY_INLINE void add_blocks(const BFloat16Pair* a, const BFloat16Pair* b) {
  _tile_loadd(4, a, 64);
  _tile_loadd(6, b, vectors * 64);
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (vectors == 2) {
    _tile_loadd(7, b + side, vectors * 64);
    _tile_dpbf16ps(1, 4, 7);
  }
  if constexpr (high == 2) {
    _tile_loadd(5, a + block_size, 64);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (vectors == 2) _tile_dpbf16ps(3, 5, 7);
  }
}

/// The last slots, fewer than a block has, with zeros behind them.
template <std::size_t high, std::size_t vectors>
EINREL_TARGET_AMX void add_rest(const BFloat16Pair* a, const BFloat16Pair* b, std::size_t slots) {
  alignas(64) BFloat16Pair a_rest[high * block_size] = {};
  alignas(64) BFloat16Pair b_rest[vectors * block_size] = {};
  for (std::size_t s = 0; s < slots; ++s) {
    for (std::size_t r = 0; r < high * side; ++r) a_rest[r * side + s] = a[s * high * side + r];
  }
  std::copy_n(b, slots * vectors * side, b_rest);
  finish_writing(a_rest);
  finish_writing(b_rest);
  add_blocks<high, vectors>(a_rest, b_rest);
}

EINREL_TARGET_AMX void take_registers() { _tile_loadconfig(&shapes); }
EINREL_TARGET_AMX void leave_registers() { _tile_release(); }

/// `step` elements from row to row.
template <std::size_t high, std::size_t vectors>
EINREL_TARGET_AMX HWY_INLINE void store_blocks(float* to, std::size_t step) {
  _tile_stored(0, to, step * 4);
  if constexpr (vectors == 2) _tile_stored(1, to + side, step * 4);
  if constexpr (high == 2) _tile_stored(2, to + side * step, step * 4);
  if constexpr (high == 2 && vectors == 2) _tile_stored(3, to + side * step + side, step * 4);
}

/// Whether a tile goes out as it is, into rows that lie at even distances.
template <std::size_t high, std::size_t vectors>
bool is_stored_whole(const Tile<float, BFloat16Pair>& task) {
  constexpr std::int64_t rows = high * side;
  if (task.accumulate || task.scale != 1 || task.rows != rows || task.lanes != vectors * side) return false;
  const std::int64_t step = task.z_rows[1] - task.z_rows[0];
  std::int64_t uneven = 0;
  for (std::int64_t r = 1; r < rows; ++r) uneven |= task.z_rows[r] - task.z_rows[r - 1] - step;
  return uneven == 0;
}

template <std::size_t high, std::size_t vectors>
EINREL_TARGET_AMX void amx_tile(const Tile<float, BFloat16Pair>& task) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const BFloat16Pair* a = task.a;
  const BFloat16Pair* b = task.b;
  finish_writing(a);
  finish_writing(b);
  auto left = static_cast<std::size_t>(task.inner);
  for (; left >= side; left -= side, a += high * block_size, b += vectors * block_size) {
    add_blocks<high, vectors>(a, b);
  }
  if (left > 0) add_rest<high, vectors>(a, b, left);
  if (is_stored_whole<high, vectors>(task)) {
    return store_blocks<high, vectors>(task.z + task.z_rows[0],
                                       static_cast<std::size_t>(task.z_rows[1] - task.z_rows[0]));
  }
  alignas(64) float tile[high * vectors * block_size];
  constexpr std::size_t row = vectors * side;
  store_blocks<high, vectors>(tile, row);
  const auto rows = static_cast<std::size_t>(task.rows);
  for (std::size_t v = 0; v < vectors; ++v) {
    const __mmask16 stored = lanes_of(v, task);
    const float* const from = tile + v * side;
    for (std::size_t r = 0; r < rows; ++r) {
      store(_mm512_load_ps(from + r * row), stored, task.z + task.z_rows[r] + v * side, task);
    }
  }
}

/// The same panels in f32, some rows at a time: nothing is taken for 0.
template <std::size_t high, std::size_t vectors>
EINREL_TARGET_BF16 void turned_tile_in_f32(const Tile<float, BFloat16Pair>& task) {
  constexpr std::size_t together = 8;
  const auto slots = static_cast<std::size_t>(task.inner);
  const auto rows = static_cast<std::size_t>(task.rows);
  const std::size_t whole = slots / side * side;
  for (std::size_t first = 0; first < rows; first += together) {
    __m512 tile[together][vectors];
    for (auto& row : tile) std::fill_n(row, vectors, _mm512_setzero_ps());
    const BFloat16Pair* const of_rows = task.a + first / side * block_size + first % side * side;
    const BFloat16Pair* b = task.b;
    for (std::size_t s = 0; s < slots; ++s, b += vectors * side) {
      const bool in_block = s < whole;
      const BFloat16Pair* const a =
          in_block ? of_rows + s / side * high * block_size + s % side : task.a + s * high * side + first;
      add_halves<false>(tile, a, b, in_block ? side : 1);
      add_halves<true>(tile, a, b, in_block ? side : 1);
    }
    for (std::size_t r = 0; r < std::min(together, rows - first); ++r) {
      for (std::size_t v = 0; v < vectors; ++v) {
        store(tile[r][v], lanes_of(v, task), task.z + task.z_rows[first + r] + v * side, task);
      }
    }
  }
}

/// Whether there are such registers, and the system lets this process use them: it has to be asked, since it saves them
/// when it switches between threads.
bool may_use_amx() {
#ifdef __linux__
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  constexpr unsigned bf16 = 1U << 22U;
  constexpr unsigned tiles = 1U << 24U;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & bf16) == 0 || (d & tiles) == 0) return false;
  constexpr long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

TileKernels<float, BFloat16Pair> amx_kernels(bool subnormals) {
  TileKernels<float, BFloat16Pair> kernels;
  kernels.rows = 2 * side;
  kernels.vector = lanes;
  kernels.turned = true;
  kernels.begin = take_registers;
  kernels.end = leave_registers;
  kernels.instructions = "AMX BF16";
  if (subnormals) {
    kernels.functions[side - 1] = {turned_tile_in_f32<1, 1>, turned_tile_in_f32<1, 2>};
    kernels.functions[2 * side - 1] = {turned_tile_in_f32<2, 1>, turned_tile_in_f32<2, 2>};
  } else {
    kernels.functions[side - 1] = {amx_tile<1, 1>, amx_tile<1, 2>};
    kernels.functions[2 * side - 1] = {amx_tile<2, 1>, amx_tile<2, 2>};
  }
  return kernels;
}

}  // namespace

const TileKernels<float, BFloat16Pair>* bf16_vector_kernels(bool subnormals) {
  constexpr auto heights = std::make_index_sequence<most_rows>();
  static const TileKernels<float, BFloat16Pair> quick = kernels_of<false>(heights);
  static const TileKernels<float, BFloat16Pair> slow = kernels_of<true>(heights);
  static const bool has_instruction = __builtin_cpu_supports("avx512bf16") != 0;
  if (!has_instruction || !HWY_DYNAMIC_DISPATCH(is_best_set)()) return nullptr;
  return subnormals ? &slow : &quick;
}

const TileKernels<float, BFloat16Pair>* bf16_kernels(bool subnormals) {
  static const TileKernels<float, BFloat16Pair> quick = amx_kernels(false);
  static const TileKernels<float, BFloat16Pair> slow = amx_kernels(true);
  static const bool has_amx = may_use_amx();
  const TileKernels<float, BFloat16Pair>* const in_vectors = bf16_vector_kernels(subnormals);
  if (!has_amx || in_vectors == nullptr) return in_vectors;
  return subnormals ? &slow : &quick;
}

}  // namespace einrel::contraction

#endif  // HWY_ONCE

#else

namespace einrel::contraction {

const TileKernels<float, BFloat16Pair>* bf16_kernels(bool /*subnormals*/) { return nullptr; }
const TileKernels<float, BFloat16Pair>* bf16_vector_kernels(bool /*subnormals*/) { return nullptr; }

}  // namespace einrel::contraction

#endif
