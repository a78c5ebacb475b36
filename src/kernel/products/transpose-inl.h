// Transposing lines into panels. Highway includes this once for each instruction set.

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernel/products/vector_ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::contraction::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

template <class T>
void transpose_lines_of(const T* const* lines, std::int64_t width, std::int64_t count, T* to, std::int64_t step,
                        std::int64_t /*ahead*/) {
  for (std::int64_t p = 0; p < count; ++p) {
    for (std::int64_t l = 0; l < width; ++l) to[p * step + l] = lines[l][p];
  }
}

#else

/// How many elements an instruction moves together.
template <class T>
inline constexpr std::size_t block_lanes = 16 / sizeof(T);

/// Stores the blocks of 16 bytes of a vector `step` apart.
template <class D>
HWY_INLINE void store_blocks(D d, hn::Vec<D> v, hn::TFromD<D>* to, std::int64_t step) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) == 16) {
    hn::StoreU(v, d, to);
  } else {
    const hn::Half<D> half;
    store_blocks(half, hn::LowerHalf(half, v), to, step);
    store_blocks(half, hn::UpperHalf(half, v), to + static_cast<std::int64_t>(hn::MaxLanes(half)) * step, step);
  }
}

/// As many positions as a vector has lanes, of four lines of 4 bytes or two lines of 8 bytes. Interleaving stays within
/// blocks of 16 bytes, of which each comes from neighbouring positions.
template <class D, class T>
HWY_INLINE void transpose_strip(D d, const T* const* lines, std::int64_t p, T* to, std::int64_t step,
                                std::int64_t ahead) {
  if (ahead != 0) {
    HWY_UNROLL(4)
    for (std::size_t l = 0; l < block_lanes<T>; ++l) __builtin_prefetch(lines[l] + p + ahead, 0, 3);
  }
  const auto a = hn::LoadU(d, lines[0] + p);
  const auto b = hn::LoadU(d, lines[1] + p);
  T* const z = to + p * step;
  if constexpr (sizeof(T) == 8) {
    store_blocks(d, hn::InterleaveLower(d, a, b), z, step);
    store_blocks(d, hn::InterleaveUpper(d, a, b), z + step, step);
  } else {
    const hn::RepartitionToWide<hn::RebindToUnsigned<D>> pairs;
    const auto e = hn::LoadU(d, lines[2] + p);
    const auto f = hn::LoadU(d, lines[3] + p);
    const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
    const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
    const auto ef_low = hn::BitCast(pairs, hn::InterleaveLower(d, e, f));
    const auto ef_high = hn::BitCast(pairs, hn::InterleaveUpper(d, e, f));
    store_blocks(d, hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ef_low)), z, step);
    store_blocks(d, hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ef_low)), z + step, step);
    store_blocks(d, hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ef_high)), z + 2 * step, step);
    store_blocks(d, hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ef_high)), z + 3 * step, step);
  }
}

/// By strips of as many lines as a block has lanes; the last ones may overlap the ones before.
template <class D, class T>
HWY_INLINE void transpose_by_strips(D d, const T* const* lines, std::int64_t width, std::int64_t count, T* to,
                                    std::int64_t step, std::int64_t ahead) {
  constexpr auto height = static_cast<std::int64_t>(block_lanes<T>);
  constexpr auto length = static_cast<std::int64_t>(hn::MaxLanes(D()));
  if constexpr (length > height) {
    if (count < length) return transpose_by_strips(hn::Half<D>(), lines, width, count, to, step, ahead);
  }
  if (width < height || count < length) {
    for (std::int64_t p = 0; p < count; ++p) {
      for (std::int64_t l = 0; l < width; ++l) to[p * step + l] = lines[l][p];
    }
    return;
  }
  constexpr std::int64_t chunk =
      8 * length;  // what is written stays in the first-level cache until all lines are in it
  for (std::int64_t begin = 0; begin < count; begin += chunk) {
    const std::int64_t end = std::min(begin + chunk, count);
    for (std::int64_t l = 0; l < width; l += height) {
      const std::int64_t first = std::min(l, width - height);
      std::int64_t p = begin;
      for (; p + length <= end; p += length) transpose_strip(d, lines + first, p, to + first, step, ahead);
      if (p < end) transpose_strip(d, lines + first, end - length, to + first, step, ahead);
    }
  }
}

#if HWY_TARGET == HWY_AVX3

/// A vector whose blocks come from lines that follow `block_lanes` after one another.
template <class D, class T>
HWY_INLINE hn::Vec<D> gather_blocks(D d, const T* const* lines, std::int64_t p) {
  if constexpr (hn::MaxLanes(D()) == block_lanes<T>) {
    return hn::LoadU(d, lines[0] + p);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, gather_blocks(half, lines + hn::MaxLanes(half), p), gather_blocks(half, lines, p));
  }
}

/// As many positions as lines, which fill a vector: each position is stored at once. Lines are read whole, a few at a
/// time, since those that begin a multiple of a page apart share a few places in the cache.
template <class D, class T>
HWY_INLINE void transpose_square(D d, const T* const* lines, std::int64_t p, const FirstLanes<D>& stored, T* to,
                                 std::int64_t step) {
  constexpr std::size_t height = block_lanes<T>;
  constexpr std::size_t groups = hn::MaxLanes(D()) / height;
  hn::Vec<D> blocks[groups][height];
  HWY_UNROLL(4)
  for (std::size_t l = 0; l < height; ++l) {
    HWY_UNROLL(4)
    for (std::size_t g = 0; g < groups; ++g) {
      blocks[g][l] = gather_blocks(d, lines + l, p + static_cast<std::int64_t>(g * height));
    }
  }
  T* z = to + p * step;
  HWY_UNROLL(4)
  for (std::size_t g = 0; g < groups; ++g, z += static_cast<std::int64_t>(height) * step) {
    const auto low = hn::InterleaveLower(d, blocks[g][0], blocks[g][1]);
    const auto high = hn::InterleaveUpper(d, blocks[g][0], blocks[g][1]);
    if constexpr (sizeof(T) == 8) {
      stored.store(low, z);
      stored.store(high, z + step);
    } else {
      const hn::RepartitionToWide<hn::RebindToUnsigned<D>> pairs;
      const auto other_low = hn::InterleaveLower(d, blocks[g][2], blocks[g][3]);
      const auto other_high = hn::InterleaveUpper(d, blocks[g][2], blocks[g][3]);
      const auto of_pairs = [&](auto v) { return hn::BitCast(pairs, v); };
      const auto store = [&](auto v, std::int64_t at) { stored.store(hn::BitCast(d, v), z + at * step); };
      store(hn::InterleaveLower(pairs, of_pairs(low), of_pairs(other_low)), 0);
      store(hn::InterleaveUpper(pairs, of_pairs(low), of_pairs(other_low)), 1);
      store(hn::InterleaveLower(pairs, of_pairs(high), of_pairs(other_high)), 2);
      store(hn::InterleaveUpper(pairs, of_pairs(high), of_pairs(other_high)), 3);
    }
  }
}

/// By squares; the last ones may overlap the ones before, and in a last column of them lines may be missing.
template <class T>
void transpose_by_squares(const T* const* lines, std::int64_t width, std::int64_t count, T* to, std::int64_t step,
                          std::int64_t ahead) {
  constexpr hn::ScalableTag<T> d;
  constexpr auto side = static_cast<std::int64_t>(hn::MaxLanes(d));
  for (std::int64_t l = 0; l < width; l += side) {
    const std::int64_t existing = std::min(side, width - l);
    if (existing <= side / 2) {
      const std::int64_t rest = std::min(width, std::max(existing, static_cast<std::int64_t>(block_lanes<T>)));
      return transpose_by_strips(d, lines + width - rest, rest, count, to + width - rest, step, ahead);
    }
    std::array<const T*, static_cast<std::size_t>(side)> square{};
    for (std::int64_t i = 0; i < side; ++i) {
      square[static_cast<std::size_t>(i)] = lines[l + std::min(i, existing - 1)];
    }
    const FirstLanes<hn::ScalableTag<T>> stored(existing);
    for (std::int64_t p = 0; p < count; p += side) {
      const std::int64_t first = std::min(p, count - side);
      if (ahead != 0) {
        for (std::int64_t i = 0; i < existing; ++i) __builtin_prefetch(lines[l + i] + first + ahead, 0, 3);
      }
      transpose_square(hn::ScalableTag<T>(), square.data(), first, stored, to + l, step);
    }
  }
}

#endif

template <class T>
void transpose_lines_of(const T* const* lines, std::int64_t width, std::int64_t count, T* to, std::int64_t step,
                        std::int64_t ahead) {
  const hn::ScalableTag<T> d;
#if HWY_TARGET == HWY_AVX3
  if (count >= static_cast<std::int64_t>(hn::MaxLanes(d))) {
    return transpose_by_squares(lines, width, count, to, step, ahead);
  }
#endif
  transpose_by_strips(d, lines, width, count, to, step, ahead);
}

#endif

}  // namespace einrel::contraction::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
