#include "exec/task_body.h"

#include <cstring>

namespace einrel {

const ChunkKernel& ChunkKernels::operator()(const CallKernel& call, const std::vector<ArrayLayout>& arguments) {
  Layouts layouts;
  layouts.reserve(arguments.size());
  for (const ArrayLayout& argument : arguments)
    layouts.emplace_back(argument.shape, argument.strides, argument.aligned);
  std::unique_ptr<ChunkKernel>& ready = ready_[{call.kernel, std::move(layouts)}];
  if (ready == nullptr) ready = std::make_unique<ChunkKernel>(graph_.kernels[call.kernel], arguments, scalars_);
  return *ready;
}

void copy_boxes(const CopyBoxes& copy, std::span<const Tensor> reads, const Shape& bound, std::byte* to) {
  const Strides strides = row_major_strides(bound);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const CopyBoxes::Box& box = copy.boxes[i];
    const Tensor from = reads[i].box(box.from, box.bound);
    const auto size = static_cast<std::int64_t>(size_of(from.dtype()));
    copy_elements(from.dtype(), box.bound, {from.data(), from.strides()}, to + offset_of(box.to, strides) * size,
                  strides);
  }
}

void make_positions(const MakePositions& positions, const Shape& bound, std::byte* to) {
  const std::int64_t end = positions.begin + bound.front().value();
  for (std::int64_t value = positions.begin; value < end; ++value, to += sizeof(value))
    std::memcpy(to, &value, sizeof(value));
}

TaskClock::TaskClock(const TaskGraph& graph, std::size_t task, int thread, TaskProgress* progress, TaskSpan& span)
    : graph_(graph), progress_(progress), span_(span), start_(std::chrono::steady_clock::now()) {
  const std::chrono::duration<double> since_1970 = std::chrono::system_clock::now().time_since_epoch();
  span_ = {task, since_1970.count(), 0, thread};
  if (progress_ != nullptr) progress_->task = task;
}

TaskClock::~TaskClock() {
  span_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (progress_ == nullptr) return;
  ++progress_->done;
  progress_->flops += flops_of(graph_.tasks[span_.task]);
}

Tensor borrowed(const TaskArray& array, const std::byte* data) {
  return {array.dtype, array.bound, row_major_strides(array.bound), data, nullptr};
}

}  // namespace einrel
