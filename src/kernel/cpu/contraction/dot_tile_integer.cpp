#include "kernel/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/contraction/dot_tile_integer.cpp"
#include "hwy/foreach_target.h"
#include "kernel/cpu/contraction/dot_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::contraction::HWY_NAMESPACE {
namespace {

const DotKernels<std::int32_t, std::int32_t>& dot_i32(Combination combination) {
  return dot_kernels_for<std::int32_t, std::int32_t>(combination);
}
const DotKernels<std::int64_t, std::int64_t>& dot_i64(Combination combination) {
  return dot_kernels_for<std::int64_t, std::int64_t>(combination);
}

}  // namespace
}  // namespace einrel::contraction::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einrel::contraction {

HWY_EXPORT(dot_i32);
HWY_EXPORT(dot_i64);

template <>
const DotKernels<std::int32_t, std::int32_t>& dot_kernels(Combination combination) {
  return HWY_DYNAMIC_DISPATCH(dot_i32)(combination);
}

template <>
const DotKernels<std::int64_t, std::int64_t>& dot_kernels(Combination combination) {
  return HWY_DYNAMIC_DISPATCH(dot_i64)(combination);
}

}  // namespace einrel::contraction
#endif
