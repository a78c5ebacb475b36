// Loops over elements whose values are rounded as they are written, so that no instruction set changes their bits: for
// every instruction set, and the choice among them. One source, since each that includes Highway takes seconds for it.

#include "kernel/elementwise/softmax_rows.h"
#include "kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/exact_loops.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernel/elementwise/accumulate-inl.h"
#include "kernel/elementwise/block_memory-inl.h"
#include "kernel/elementwise/block_ops-inl.h"
#include "kernel/elementwise/row_folds-inl.h"
#include "kernel/elementwise/streaming-inl.h"
#include "kernel/movement/select_loops-inl.h"
// Of the parts of row_folds-inl.h.
#include "kernel/elementwise/softmax_rows-inl.h"

#ifndef EINREL_EXACT_LOOPS
#define EINREL_EXACT_LOOPS
namespace einrel {

template <class T>
using SoftmaxLoop = void (*)(const SoftmaxRows&, const T* from, T* to, T* workspace);

struct ExactLoops {
  BlockOps ops;
  BlockMemory memory;
  AccumulateOps accumulate;
  RowFolds rows;
  SelectLoops select;
  void (*stream)(std::byte* to, const std::byte* from, std::size_t bytes);
  SoftmaxLoop<float> softmax_f32;
  SoftmaxLoop<double> softmax_f64;
};

}  // namespace einrel
#endif

HWY_BEFORE_NAMESPACE();
namespace einrel::HWY_NAMESPACE {
namespace {

const ExactLoops& loops() {
  static constexpr ExactLoops all{all_block_ops,    all_block_memory, all_accumulate_ops,     all_row_folds,
                                  all_select_loops, stream_bytes,     softmax_rows_of<float>, softmax_rows_of<double>};
  return all;
}

}  // namespace
}  // namespace einrel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einrel {
namespace {

HWY_EXPORT(loops);
const ExactLoops& exact_loops() { return HWY_DYNAMIC_DISPATCH(loops)(); }

}  // namespace

const BlockOps& block_ops() { return exact_loops().ops; }
const BlockMemory& block_memory() { return exact_loops().memory; }
const AccumulateOps& accumulate_ops() { return exact_loops().accumulate; }
const RowFolds& row_folds() { return exact_loops().rows; }
const SelectLoops& select_loops() { return exact_loops().select; }

void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) { exact_loops().stream(to, from, bytes); }
void finish_streaming() { hwy::FlushStream(); }

void softmax_rows(const SoftmaxRows& shape, const float* from, float* to, float* workspace) {
  exact_loops().softmax_f32(shape, from, to, workspace);
}
void softmax_rows(const SoftmaxRows& shape, const double* from, double* to, double* workspace) {
  exact_loops().softmax_f64(shape, from, to, workspace);
}

}  // namespace einrel
#endif
