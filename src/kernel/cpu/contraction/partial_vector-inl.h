// Vectors of which only the first lanes are in use. Highway includes this once for each instruction set.

#include "hwy/highway.h"

#if defined(EINREL_CONTRACTION_PARTIAL_VECTOR_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef EINREL_CONTRACTION_PARTIAL_VECTOR_INL_H
#undef EINREL_CONTRACTION_PARTIAL_VECTOR_INL_H
#else
#define EINREL_CONTRACTION_PARTIAL_VECTOR_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace einrel::contraction::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

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

}  // namespace einrel::contraction::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
