#include "kernel/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/contraction/tile_float.cpp"
#include "hwy/foreach_target.h"
#include "kernel/cpu/contraction/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::contraction::HWY_NAMESPACE {
namespace {

const TileKernels<float>& kernels_4(Combination combination, bool careful) {
  return kernels_for<float>(combination, careful);
}
const TileKernels<double>& kernels_8(Combination combination, bool careful) {
  return kernels_for<double>(combination, careful);
}

}  // namespace
}  // namespace einrel::contraction::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einrel::contraction {

HWY_EXPORT(kernels_4);
HWY_EXPORT(kernels_8);

template <>
const TileKernels<float>& tile_kernels(Combination combination, bool careful) {
  return HWY_DYNAMIC_DISPATCH(kernels_4)(combination, careful);
}

template <>
const TileKernels<double>& tile_kernels(Combination combination, bool careful) {
  return HWY_DYNAMIC_DISPATCH(kernels_8)(combination, careful);
}

}  // namespace einrel::contraction
#endif
