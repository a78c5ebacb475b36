// Joins and reductions of vectors, their loads and stores, for every instruction set. No include guard in the usual
// sense: Highway includes this once for each of them.

#include <cstring>
#include <limits>

#include "hwy/highway.h"
#include "kernel/products/combination.h"
#include "machine/processor.h"
#include "tensor/dtype.h"

#if defined(EINREL_CONTRACTION_VECTOR_OPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef EINREL_CONTRACTION_VECTOR_OPS_INL_H
#undef EINREL_CONTRACTION_VECTOR_OPS_INL_H
#else
#define EINREL_CONTRACTION_VECTOR_OPS_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace einrel::contraction::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// How many rows of two vectors each stay in registers beside two vectors of B, one of A and one to compute with.
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64
inline constexpr std::size_t tile_rows = 14;
#elif HWY_TARGET == HWY_SCALAR
inline constexpr std::size_t tile_rows = 2;
#else
inline constexpr std::size_t tile_rows = 6;
#endif

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Vector = hn::Vec<Tag<T>>;
template <class T>
inline constexpr std::size_t vector_lanes = hn::MaxLanes(Tag<T>());

// Integers wrap: they are added and multiplied as unsigned ones.

template <class V>
HWY_INLINE V wrapping_add(V a, V b) {
  const hn::DFromV<V> d;
  if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
    return hn::Add(a, b);
  } else {
    const hn::RebindToUnsigned<decltype(d)> u;
    return hn::BitCast(d, hn::Add(hn::BitCast(u, a), hn::BitCast(u, b)));
  }
}

template <class V>
HWY_INLINE V wrapping_subtract(V a, V b) {
  const hn::DFromV<V> d;
  if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
    return hn::Sub(a, b);
  } else {
    const hn::RebindToUnsigned<decltype(d)> u;
    return hn::BitCast(d, hn::Sub(hn::BitCast(u, a), hn::BitCast(u, b)));
  }
}

template <class V>
HWY_INLINE V wrapping_multiply(V a, V b) {
  const hn::DFromV<V> d;
  if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
    return hn::Mul(a, b);
  } else {
    const hn::RebindToUnsigned<decltype(d)> u;
    return hn::BitCast(d, hn::BitCast(u, a) * hn::BitCast(u, b));
  }
}

/// The larger one, `held` among equals, NaN if either is; without `careful`, of two numbers.
template <bool careful, class V>
HWY_INLINE V maximum(V held, V value) {
  if constexpr (careful && hwy::IsFloat<hn::TFromV<V>>()) {
    return hn::IfThenElse(hn::Or(hn::Gt(value, held), hn::IsNaN(value)), value, held);
  } else {
    return hn::Max(value, held);
  }
}

template <bool careful, class V>
HWY_INLINE V minimum(V held, V value) {
  if constexpr (careful && hwy::IsFloat<hn::TFromV<V>>()) {
    return hn::IfThenElse(hn::Or(hn::Lt(value, held), hn::IsNaN(value)), value, held);
  } else {
    return hn::Min(value, held);
  }
}

template <Join join, bool careful, class V>
HWY_INLINE V joined(V a, V b) {
  if constexpr (join == Join::multiply) {
    return wrapping_multiply(a, b);
  } else if constexpr (join == Join::add) {
    return wrapping_add(a, b);
  } else if constexpr (join == Join::square_difference) {
    const V difference = wrapping_subtract(a, b);
    return wrapping_multiply(difference, difference);
  } else if constexpr (join == Join::absolute_difference) {
    return hn::Abs(wrapping_subtract(a, b));
  } else if constexpr (join == Join::maximum) {
    return maximum<careful>(a, b);
  } else {
    return minimum<careful>(a, b);
  }
}

template <Reduce reduce, bool careful, class V>
HWY_INLINE V reduced(V held, V value) {
  if constexpr (reduce == Reduce::sum) {
    return wrapping_add(held, value);
  } else if constexpr (reduce == Reduce::max) {
    return maximum<careful>(held, value);
  } else {
    return minimum<careful>(held, value);
  }
}

/// reduce(held, join(a, b)), of floats with one rounding where that is faster.
template <Join join, Reduce reduce, bool careful, class V>
HWY_INLINE V step(V held, V a, V b) {
  if constexpr (hwy::IsFloat<hn::TFromV<V>>() && reduce == Reduce::sum && join == Join::multiply) {
    return hn::MulAdd(a, b, held);
  } else if constexpr (hwy::IsFloat<hn::TFromV<V>>() && reduce == Reduce::sum && join == Join::square_difference) {
    const V difference = hn::Sub(a, b);
    return hn::MulAdd(difference, difference, held);
  } else {
    return reduced<reduce, careful>(held, joined<join, careful>(a, b));
  }
}

/// So many rows of A in a panel, which has those of each slot side by side.
template <class T, std::size_t rows>
class RowsOfPanel {
 public:
  HWY_INLINE explicit RowsOfPanel(const T* a) : a_(a) {}
  HWY_INLINE T at(std::size_t row, std::size_t slot) const { return a_[slot * rows + row]; }
  HWY_INLINE void advance(std::size_t slots) { a_ += slots * rows; }

 private:
  const T* a_;
};

/// So many rows of A where they lie, `step` elements apart, which have their slots side by side. There is one address
/// for three rows, since processors add the step once or twice to it on the way: 14 would not stay in registers.
template <class T, std::size_t rows>
class RowsInPlace {
 public:
  HWY_INLINE RowsInPlace(const T* a, std::int64_t step) : step_(step) {
    HWY_UNROLL(5)
    for (std::size_t g = 0; g < groups; ++g) begin_[g] = a + static_cast<std::int64_t>(3 * g) * step;
  }
  HWY_INLINE T at(std::size_t row, std::size_t slot) const {
    return begin_[row / 3][static_cast<std::int64_t>(row % 3) * step_ + static_cast<std::int64_t>(slot)];
  }
  HWY_INLINE void advance(std::size_t slots) {
    HWY_UNROLL(5)
    for (std::size_t g = 0; g < groups; ++g) begin_[g] += slots;
  }
  /// As many slots of each row behind so many.
  HWY_INLINE void fetch(std::size_t slots) const {
    HWY_UNROLL(14)
    for (std::size_t r = 0; r < rows; ++r) {
      const T* const row = begin_[r / 3] + static_cast<std::int64_t>(r % 3) * step_;
      HWY_UNROLL(2)
      for (std::size_t s = slots; s < 2 * slots; s += nominal_processor.line_bytes / sizeof(T))
        __builtin_prefetch(row + s, 0, 3);
    }
  }

 private:
  static constexpr std::size_t groups = (rows + 2) / 3;
  const T* begin_[groups];
  std::int64_t step_;
};

/// So many rows of A, `step` elements apart, whose slots begin where `inner` says.
template <class T, std::size_t rows>
class RowsOfWindows {
 public:
  HWY_INLINE RowsOfWindows(const T* a, std::int64_t step, const std::int64_t* inner)
      : a_(a), step_(step), inner_(inner) {}
  HWY_INLINE T at(std::size_t row, std::size_t slot) const {
    return a_[inner_[slot] + static_cast<std::int64_t>(row) * step_];
  }
  HWY_INLINE void advance(std::size_t slots) { inner_ += slots; }

 private:
  const T* a_;
  std::int64_t step_;
  const std::int64_t* inner_;
};

/// Reduces a tile with the joins of one slot of A and the lanes of B there.
template <class T, Join join, Reduce reduce, bool careful, class Rows, std::size_t rows, std::size_t vectors>
HWY_INLINE void add_slot(Vector<T> (&tile)[rows][vectors], const Rows& a, std::size_t slot, const T* b) {
  const Tag<T> d;
  Vector<T> b_lanes[vectors];
  HWY_UNROLL(2)
  for (std::size_t v = 0; v < vectors; ++v) b_lanes[v] = hn::LoadU(d, b + v * vector_lanes<T>);
  HWY_UNROLL(14)
  for (std::size_t r = 0; r < rows; ++r) {
    const Vector<T> a_lanes = hn::Set(d, a.at(r, slot));
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < vectors; ++v) tile[r][v] = step<join, reduce, careful>(tile[r][v], a_lanes, b_lanes[v]);
  }
}

/// The same of so many slots, and on to those behind them. In steps of two: processors fetch what lies as far behind a
/// load as it lies behind the one of the step before, and that of the next slot would come too late from the
/// second-level cache.
template <class T, Join join, Reduce reduce, bool careful, class Rows, std::size_t rows, std::size_t vectors>
HWY_INLINE void add_slots(Vector<T> (&tile)[rows][vectors], Rows& a, const T*& b, std::int64_t count) {
  constexpr std::size_t lanes = vectors * vector_lanes<T>;
  for (; count >= 2; count -= 2, a.advance(2), b += 2 * lanes) {
    add_slot<T, join, reduce, careful>(tile, a, 0, b);
    add_slot<T, join, reduce, careful>(tile, a, 1, b + lanes);
  }
  if (count > 0) {
    add_slot<T, join, reduce, careful>(tile, a, 0, b);
    a.advance(1);
    b += lanes;
  }
}

/// What reducing starts from.
template <class T, Reduce reduce>
constexpr T identity() {
  using Limits = std::numeric_limits<T>;
  if constexpr (reduce == Reduce::sum) {
    return 0;
  } else if constexpr (reduce == Reduce::max) {
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  } else {
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
}

constexpr bool needs_care(Join join, Reduce reduce) {
  return join == Join::maximum || join == Join::minimum || reduce != Reduce::sum;
}

constexpr const char* instruction_set() {
#if HWY_TARGET == HWY_AVX3
  return "AVX-512";
#elif HWY_TARGET == HWY_AVX2
  return "AVX2";
#elif HWY_ARCH_ARM
  return "NEON";
#else
  return "no vectors";
#endif
}

// Vectors of which only the first lanes are in use.

/// Loads and stores the first lanes of vectors and touches no memory behind them. The other lanes are 0.
template <class D>
class FirstLanes {
 public:
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  HWY_INLINE explicit FirstLanes(std::int64_t count) : mask_(hn::FirstN(D(), static_cast<std::size_t>(count))) {}
  HWY_INLINE V load(const T* from) const { return hn::MaskedLoad(mask_, D(), from); }
  HWY_INLINE void store(V values, T* to) const { hn::BlendedStore(values, mask_, D(), to); }
  HWY_INLINE V select(V values, V others) const { return hn::IfThenElse(mask_, values, others); }

 private:
  hn::Mask<D> mask_;
#else
  HWY_INLINE explicit FirstLanes(std::int64_t count) : count_(count) {}
  HWY_INLINE V load(const T* from) const {
    HWY_ALIGN T lanes[hn::MaxLanes(D())] = {};
    for (std::int64_t l = 0; l < count_; ++l) lanes[l] = from[l];
    return hn::Load(D(), lanes);
  }
  HWY_INLINE void store(V values, T* to) const {
    HWY_ALIGN T lanes[hn::MaxLanes(D())];
    hn::Store(values, D(), lanes);
    for (std::int64_t l = 0; l < count_; ++l) to[l] = lanes[l];
  }
  HWY_INLINE V select(V values, V others) const {
    return hn::IfThenElse(hn::FirstN(D(), static_cast<std::size_t>(count_)), values, others);
  }

 private:
  std::int64_t count_;
#endif
};

// Vectors of elements that are stored as bf16 or f16. They lie at any address.

/// One element as it is computed with.
template <class T>
HWY_INLINE T load_one(const T* from) {
  return *from;
}
HWY_INLINE float load_one(const BFloat16* from) { return to_float(*from); }
HWY_INLINE float load_one(const Float16* from) {
  Float16 one;
  std::memcpy(&one, from, sizeof one);
  return to_float(one);
}

/// A vector of elements as they are computed with.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_vector(D d, const T* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> load_vector(D d, const BFloat16* from) {
  const hn::Rebind<std::uint16_t, D> narrow;
  const hn::Rebind<std::uint32_t, D> bits;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, hn::LoadU(narrow, &from->bits))));
}
template <class D>
HWY_INLINE hn::Vec<D> load_vector(D d, const Float16* from) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  const hn::Rebind<hwy::float16_t, D> narrow;
  const hn::Rebind<std::uint16_t, D> bits;
  return hn::PromoteTo(d, hn::BitCast(narrow, hn::LoadU(bits, reinterpret_cast<const std::uint16_t*>(from))));
#else  // what Highway does without hardware for it gives wrong infinities
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  for (std::size_t l = 0; l < hn::Lanes(d); ++l) lanes[l] = load_one(from + l);
  return hn::Load(d, lanes);
#endif
}

}  // namespace einrel::contraction::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
