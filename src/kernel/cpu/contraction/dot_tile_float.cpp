#include "kernel/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/contraction/dot_tile_float.cpp"
#include "hwy/foreach_target.h"
#include "kernel/cpu/contraction/dot_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::contraction::HWY_NAMESPACE {
namespace {

const DotKernels<float, float>& dot_f32(Combination combination) { return dot_kernels_for<float, float>(combination); }
const DotKernels<float, BFloat16>& dot_bf16(Combination combination) {
  return dot_kernels_for<float, BFloat16>(combination);
}
const DotKernels<float, Float16>& dot_f16(Combination combination) {
  return dot_kernels_for<float, Float16>(combination);
}
const DotKernels<double, double>& dot_f64(Combination combination) {
  return dot_kernels_for<double, double>(combination);
}

}  // namespace
}  // namespace einrel::contraction::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einrel::contraction {

HWY_EXPORT(dot_f32);
HWY_EXPORT(dot_bf16);
HWY_EXPORT(dot_f16);
HWY_EXPORT(dot_f64);

template <>
const DotKernels<float, float>& dot_kernels(Combination combination) {
  return HWY_DYNAMIC_DISPATCH(dot_f32)(combination);
}

template <>
const DotKernels<float, BFloat16>& dot_kernels(Combination combination) {
  return HWY_DYNAMIC_DISPATCH(dot_bf16)(combination);
}

template <>
const DotKernels<float, Float16>& dot_kernels(Combination combination) {
  return HWY_DYNAMIC_DISPATCH(dot_f16)(combination);
}

template <>
const DotKernels<double, double>& dot_kernels(Combination combination) {
  return HWY_DYNAMIC_DISPATCH(dot_f64)(combination);
}

}  // namespace einrel::contraction
#endif
