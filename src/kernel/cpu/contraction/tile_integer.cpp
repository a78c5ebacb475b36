#include "kernel/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/contraction/tile_integer.cpp"
#include "hwy/foreach_target.h"
#include "kernel/cpu/contraction/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::contraction::HWY_NAMESPACE {
namespace {

const TileKernels<std::int32_t>& kernels_4(Combination combination, bool careful) {
  return kernels_for<std::int32_t>(combination, careful);
}
const TileKernels<std::int64_t>& kernels_8(Combination combination, bool careful) {
  return kernels_for<std::int64_t>(combination, careful);
}

}  // namespace
}  // namespace einrel::contraction::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einrel::contraction {

HWY_EXPORT(kernels_4);
HWY_EXPORT(kernels_8);

template <>
const TileKernels<std::int32_t>& tile_kernels(Combination combination, bool careful) {
  return HWY_DYNAMIC_DISPATCH(kernels_4)(combination, careful);
}

template <>
const TileKernels<std::int64_t>& tile_kernels(Combination combination, bool careful) {
  return HWY_DYNAMIC_DISPATCH(kernels_8)(combination, careful);
}

}  // namespace einrel::contraction
#endif
