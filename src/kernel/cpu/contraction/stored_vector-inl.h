// Vectors of elements that are stored as bf16 or f16. Highway includes this once for each instruction set.

#include "hwy/highway.h"
#include "tensor/dtype.h"

#if defined(EINREL_CONTRACTION_STORED_VECTOR_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef EINREL_CONTRACTION_STORED_VECTOR_INL_H
#undef EINREL_CONTRACTION_STORED_VECTOR_INL_H
#else
#define EINREL_CONTRACTION_STORED_VECTOR_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace einrel::contraction::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// One element as it is computed with.
template <class T>
HWY_INLINE T load_one(const T* from) {
  return *from;
}
HWY_INLINE float load_one(const BFloat16* from) { return to_float(*from); }
HWY_INLINE float load_one(const Float16* from) { return to_float(*from); }

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
  return hn::PromoteTo(d, hn::BitCast(narrow, hn::LoadU(bits, &from->bits)));
#else  // what Highway does without hardware for it gives wrong infinities
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  for (std::size_t l = 0; l < hn::Lanes(d); ++l) lanes[l] = to_float(from[l]);
  return hn::Load(d, lanes);
#endif
}

}  // namespace einrel::contraction::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
