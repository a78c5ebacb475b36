#include "kernel/products/pack_ops.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <type_traits>

#include "kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/products/pack_ops.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernel/products/transpose-inl.h"
#include "kernel/products/vector_ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::contraction::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Loads and stores of less than a vector must not touch what lies behind: with masks where the processor has them.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
constexpr bool has_masks = true;
#else
constexpr bool has_masks = false;
#endif

/// The last lanes of a panel, less than a vector of them.
template <class T, class Stored>
HWY_INLINE void copy_rest(const Stored* from, std::int64_t rest, T* to) {
  if constexpr (has_masks && std::is_same_v<T, Stored>) {
    const hn::ScalableTag<T> d;
    const auto mask = hn::FirstN(d, static_cast<std::size_t>(rest));
    hn::BlendedStore(hn::MaskedLoad(mask, d, from), mask, d, to);
  } else {
    for (std::int64_t l = 0; l < rest; ++l) to[l] = load_one(from + l);
  }
}

/// Position by position, since what lies side by side comes fastest from memory.
template <class T, class Stored>
void copy_lines_of(const LineCopy<T, Stored>& copy) {
  const hn::ScalableTag<T> d;
  constexpr auto vector = static_cast<std::int64_t>(hn::MaxLanes(d));
  constexpr std::int64_t ahead = 8;  // positions
  for (std::int64_t i = 0; i < copy.count; ++i) {
    const std::int64_t p = copy.positions[i];
    const Stored* from = copy.source + copy.offsets[p];
    const Stored* soon = copy.source + copy.offsets[copy.positions[std::min(i + ahead, copy.count - 1)]];
    T* to = copy.to + p * copy.width;
    for (std::int64_t q = 0; q < copy.panels; ++q, from += copy.lanes, soon += copy.lanes, to += copy.panel) {
      __builtin_prefetch(soon, 0, 3);
      __builtin_prefetch(soon + copy.lanes - 1, 0, 3);
      std::int64_t done = 0;
      for (; done + vector <= copy.lanes; done += vector) hn::StoreU(load_vector(d, from + done), d, to + done);
      if (done < copy.lanes) copy_rest(from + done, copy.lanes - done, to + done);
    }
  }
}

/// A vector of pairs, from their halves.
template <class D, class V>
HWY_INLINE hn::Vec<D> paired(D d, V low, V high) {
  return hn::Or(hn::PromoteTo(d, low), hn::ShiftLeft<16>(hn::PromoteTo(d, high)));
}

/// Both halves of `lanes` slots, from two lines.
HWY_INLINE void pair_up(const BFloat16* low, const BFloat16* high, std::int64_t lanes, BFloat16Pair* to) {
  const hn::ScalableTag<BFloat16Pair> d;
  const hn::Rebind<std::uint16_t, decltype(d)> half;
  constexpr auto vector = static_cast<std::int64_t>(hn::MaxLanes(d));
  std::int64_t l = 0;
  for (; l + vector <= lanes; l += vector) {
    hn::StoreU(paired(d, hn::LoadU(half, &low[l].bits), hn::LoadU(half, &high[l].bits)), d, to + l);
  }
#if HWY_TARGET == HWY_AVX3
  if (l == lanes) return;
  const auto rest = hn::FirstN(half, static_cast<std::size_t>(lanes - l));
  const auto slots = hn::FirstN(d, static_cast<std::size_t>(lanes - l));
  hn::BlendedStore(paired(d, hn::MaskedLoad(rest, half, &low[l].bits), hn::MaskedLoad(rest, half, &high[l].bits)),
                   slots, d, to + l);
#else
  for (; l < lanes; ++l) to[l] = low[l].bits | static_cast<BFloat16Pair>(high[l].bits) << 16U;
#endif
}

/// Two positions at once where both halves of a slot are copied.
void copy_pairs_of(const LineCopy<BFloat16Pair, BFloat16>& copy) {
  constexpr std::int64_t ahead = 8;  // positions
  for (std::int64_t i = 0; i < copy.count;) {
    const std::int64_t p = copy.positions[i];
    const bool both = p % 2 == 0 && i + 1 < copy.count && copy.positions[i + 1] == p + 1;
    const BFloat16* const from = copy.source + copy.offsets[p];
    const BFloat16* const other = copy.source + copy.offsets[both ? p + 1 : p];
    const auto soon = [&](std::int64_t next) {
      return copy.source + copy.offsets[copy.positions[std::min(next, copy.count - 1)]];
    };
    const std::array<const BFloat16*, 2> fetched{soon(i + ahead), soon(i + ahead + 1)};
    for (std::int64_t q = 0; q < copy.panels; ++q) {
      const std::int64_t begin = q * copy.lanes;
      BFloat16Pair* const to = copy.to + q * copy.panel + p / 2 * copy.width;
      for (const BFloat16* const line : fetched) __builtin_prefetch(line + begin, 0, 3);
      if (both) {
        pair_up(from + begin, other + begin, copy.lanes, to);
      } else {
        const unsigned shift = p % 2 == 0 ? 0 : 16;
        const BFloat16Pair kept = 0xFFFF0000U >> shift;
        for (std::int64_t l = 0; l < copy.lanes; ++l) {
          to[l] = (to[l] & kept) | static_cast<BFloat16Pair>(from[begin + l].bits) << shift;
        }
      }
    }
    i += both ? 2 : 1;
  }
}

template <class Stored>
void convert_line_of(const Stored* from, std::int64_t count, float* to) {
  const hn::ScalableTag<float> d;
  constexpr auto vector = static_cast<std::int64_t>(hn::MaxLanes(d));
  std::int64_t i = 0;
  for (; i + vector <= count; i += vector) hn::StoreU(load_vector(d, from + i), d, to + i);
  for (; i < count; ++i) to[i] = load_one(from + i);
}

HWY_INLINE void narrow_one(float value, BFloat16* to) { *to = to_bfloat16(value); }
HWY_INLINE void narrow_one(float value, Float16* to) {
  const Float16 one = to_float16(value);
  std::memcpy(to, &one, sizeof one);
}

/// As to_bfloat16.
template <class D>
HWY_INLINE std::int64_t narrow_to_bf16(D d, const float* from, std::int64_t count, BFloat16* to) {
  const hn::RebindToUnsigned<D> bits_of;
  const hn::Rebind<std::uint16_t, D> narrow;
  constexpr auto vector = static_cast<std::int64_t>(hn::MaxLanes(d));
  std::int64_t i = 0;
  for (; i + vector <= count; i += vector) {
    const auto value = hn::LoadU(d, from + i);
    const auto bits = hn::BitCast(bits_of, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(bits_of, 1));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(bits_of, 0x7FFF)));
    const auto quiet = hn::Or(bits, hn::Set(bits_of, 0x400000));
    const auto high = hn::ShiftRight<16>(hn::IfThenElse(hn::RebindMask(bits_of, hn::IsNaN(value)), quiet, rounded));
    hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(hn::RebindToSigned<D>(), high)), narrow,
               reinterpret_cast<std::uint16_t*>(to + i));
  }
  return i;
}

template <class Stored>
void narrow_line_of(const float* from, std::int64_t count, Stored* to) {
  std::int64_t i = 0;
  if constexpr (std::is_same_v<Stored, BFloat16>) i = narrow_to_bf16(hn::ScalableTag<float>(), from, count, to);
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  if constexpr (std::is_same_v<Stored, Float16>) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<hwy::float16_t, decltype(d)> narrow;
    const hn::Rebind<std::uint16_t, decltype(d)> bits;
    constexpr auto vector = static_cast<std::int64_t>(hn::MaxLanes(d));
    for (; i + vector <= count; i += vector) {
      hn::StoreU(hn::BitCast(bits, hn::DemoteTo(narrow, hn::LoadU(d, from + i))), bits,
                 reinterpret_cast<std::uint16_t*>(to + i));
    }
  }
#endif
  for (; i < count; ++i) narrow_one(from[i], to + i);
}

std::uint64_t outside_of(const std::int64_t* values, std::int64_t count, std::int64_t low, std::int64_t high) {
  std::uint64_t bits = 0;
  std::int64_t l = 0;
#if HWY_TARGET == HWY_AVX3
  const hn::ScalableTag<std::int64_t> d;
  constexpr auto vector = static_cast<std::int64_t>(hn::MaxLanes(d));
  const auto lowest = hn::Set(d, low);
  const auto highest = hn::Set(d, high);
  for (; l + vector <= count; l += vector) {
    const auto v = hn::LoadU(d, values + l);
    std::uint8_t found = 0;
    hn::StoreMaskBits(d, hn::Or(hn::Lt(v, lowest), hn::Gt(v, highest)), &found);
    bits |= std::uint64_t{found} << static_cast<unsigned>(l);
  }
#endif
  for (; l < count; ++l) {
    bits |= static_cast<std::uint64_t>(values[l] < low || values[l] > high) << static_cast<unsigned>(l);
  }
  return bits;
}

template <class T>
void store_lines_of(const LineStore<T>& store) {
  const hn::ScalableTag<T> d;
  constexpr auto vector = static_cast<std::int64_t>(hn::MaxLanes(d));
  const auto scale = hn::Set(d, store.scale);
  const std::int64_t whole = store.count / vector * vector;
  for (std::int64_t r = 0; r < store.rows; ++r) {
    const T* const values = store.values + r * store.stride;
    T* const to = store.to + store.offsets[r];
    for (std::int64_t i = 0; i < whole; i += vector) {
      auto v = hn::Mul(hn::LoadU(d, values + i), scale);
      if (store.accumulate) v = hn::Add(hn::LoadU(d, to + i), v);
      hn::StoreU(v, d, to + i);
    }
    if (whole == store.count) continue;
    const FirstLanes<decltype(d)> rest(store.count - whole);
    auto v = hn::Mul(rest.load(values + whole), scale);
    if (store.accumulate) v = hn::Add(rest.load(to + whole), v);
    rest.store(v, to + whole);
  }
}

template <class T>
Specials specials_of(const T* values, std::int64_t count) {
  const hn::ScalableTag<T> d;
  constexpr auto vector = static_cast<std::int64_t>(hn::MaxLanes(d));
  const auto infinity = hn::Set(d, std::numeric_limits<T>::infinity());
  auto nan = hn::IsNaN(infinity);
  auto plus = nan;
  auto minus = nan;
  std::int64_t i = 0;
  for (; i + vector <= count; i += vector) {
    const auto v = hn::LoadU(d, values + i);
    nan = hn::Or(nan, hn::IsNaN(v));
    plus = hn::Or(plus, hn::Eq(v, infinity));
    minus = hn::Or(minus, hn::Eq(v, hn::Neg(infinity)));
  }
  Specials found{!hn::AllFalse(d, nan), !hn::AllFalse(d, plus), !hn::AllFalse(d, minus)};
  for (; i < count; ++i) {
    found.nan = found.nan || values[i] != values[i];
    found.plus_infinity = found.plus_infinity || values[i] == std::numeric_limits<T>::infinity();
    found.minus_infinity = found.minus_infinity || values[i] == -std::numeric_limits<T>::infinity();
  }
  return found;
}

/// Subnormals alone are below 127 when 1 is taken from their bits without the sign: 0 wraps around.
Specials specials_of_pairs(const BFloat16Pair* pairs, std::int64_t count) {
  const hn::ScalableTag<std::uint16_t> d;
  constexpr std::uint16_t below = 127;
  constexpr auto vector = static_cast<std::int64_t>(hn::MaxLanes(d)) / 2;  // pairs
  const auto one = hn::Set(d, 1);
  const auto unsigned_bits = hn::Set(d, 0x7FFF);
  auto least = hn::Set(d, below);
  std::int64_t i = 0;
  for (; i + vector <= count; i += vector) {
    const auto halves = hn::LoadU(d, reinterpret_cast<const std::uint16_t*>(pairs + i));
    least = hn::Min(least, hn::Sub(hn::And(halves, unsigned_bits), one));
  }
  Specials specials;
  specials.subnormal = !hn::AllTrue(d, hn::Eq(least, hn::Set(d, below)));
  for (; i < count; ++i) {
    const BFloat16Pair low = (pairs[i] & 0x7FFFU) - 1;
    const BFloat16Pair high = (pairs[i] >> 16U & 0x7FFFU) - 1;
    specials.subnormal = specials.subnormal || std::min(low, high) < below;
  }
  return specials;
}

const PackOps& pack_ops_of() {
  static constexpr PackOps ops{{copy_lines_of<float, float>, copy_lines_of<double, double>,
                                copy_lines_of<std::int32_t, std::int32_t>, copy_lines_of<std::int64_t, std::int64_t>,
                                copy_lines_of<float, BFloat16>, copy_lines_of<float, Float16>, copy_pairs_of},
                               {transpose_lines_of<float>, transpose_lines_of<double>, transpose_lines_of<std::int32_t>,
                                transpose_lines_of<std::int64_t>, transpose_lines_of<BFloat16Pair>},
                               {convert_line_of<BFloat16>, convert_line_of<Float16>},
                               {narrow_line_of<BFloat16>, narrow_line_of<Float16>},
                               HWY_TARGET == HWY_AVX3,
                               outside_of,
                               {store_lines_of<float>, store_lines_of<double>},
                               {specials_of<float>, specials_of<double>, specials_of_pairs}};
  return ops;
}

}  // namespace
}  // namespace einrel::contraction::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#if HWY_ARCH_X86_64
#include <immintrin.h>
#endif

namespace einrel::contraction {
namespace {

HWY_EXPORT(pack_ops_of);

}  // namespace

const PackOps& pack_ops() { return HWY_DYNAMIC_DISPATCH(pack_ops_of)(); }

#if HWY_ARCH_X86_64

/// Vectors of 16, up to the first one with a number below the normal range, which the instruction takes for 0. Returns
/// how many elements these are.
__attribute__((target("avx512f,avx512vl,avx512dq,avx512bf16"))) static std::int64_t narrow_by_instruction(
    const float* from, std::int64_t count, BFloat16* to) {
  constexpr int subnormal = 0x20;
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m512 values = _mm512_loadu_ps(from + i);
    if (_mm512_fpclass_ps_mask(values, subnormal) != 0) break;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(values)));
  }
  return i;
}

void narrow_line(const float* from, std::int64_t count, BFloat16* to) {
  static const bool is_there = __builtin_cpu_supports("avx512bf16") != 0;
  const bool has_instruction = is_there && pack_ops().is_avx512;
  std::int64_t next = has_instruction ? narrow_by_instruction(from, count, to) : 0;
  while (next < count) {
    const std::int64_t others = has_instruction ? std::min<std::int64_t>(count - next, 16) : count;
    std::get<NarrowLine<BFloat16>>(pack_ops().narrow)(from + next, others, to + next);
    next += others;
    if (next < count) next += narrow_by_instruction(from + next, count - next, to + next);
  }
}

#else

void narrow_line(const float* from, std::int64_t count, BFloat16* to) {
  std::get<NarrowLine<BFloat16>>(pack_ops().narrow)(from, count, to);
}

#endif

}  // namespace einrel::contraction
#endif
