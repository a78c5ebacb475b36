// Loops over elements that are approximated, with fused multiply-add where the instruction set has it: they come out
// faster and a little closer with it. For every instruction set, and the choice among them.

#include "kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/fused_loops.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernel/elementwise/block_math-inl.h"
#include "kernel/elementwise/log_sum_exp-inl.h"

#ifndef EINREL_FUSED_LOOPS
#define EINREL_FUSED_LOOPS
namespace einrel {

struct FusedLoops {
  BlockMath math;
  LogSumExp exponentials;
};

}  // namespace einrel
#endif

HWY_BEFORE_NAMESPACE();
namespace einrel::HWY_NAMESPACE {
namespace {

const FusedLoops& loops() {
  static constexpr FusedLoops all{all_block_math, all_log_sum_exp};
  return all;
}

}  // namespace
}  // namespace einrel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einrel {
namespace {

HWY_EXPORT(loops);
const FusedLoops& fused_loops() { return HWY_DYNAMIC_DISPATCH(loops)(); }

}  // namespace

const BlockMath& block_math() { return fused_loops().math; }
const LogSumExp& log_sum_exp() { return fused_loops().exponentials; }

}  // namespace einrel
#endif
