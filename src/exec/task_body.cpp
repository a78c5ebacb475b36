#include "exec/task_body.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace einrel {
namespace {

/// The arrays that a kernel is called with, of all that its task reads.
std::span<const Tensor* const> arrays_of(const CallKernel& call, std::span<const Tensor* const> reads) {
  return reads.first(reads.size() - (call.onto ? 1 : 0));
}

}  // namespace

std::vector<const std::byte*> argument_data(const CallKernel& call, std::span<const Tensor* const> reads) {
  std::vector<const std::byte*> data;
  for (const Tensor* const array : arrays_of(call, reads)) data.push_back(array->data());
  for (const std::int64_t& number : call.numbers) data.push_back(std::as_bytes(std::span(&number, 1)).data());
  return data;
}

const ChunkKernel* ChunkKernels::find(const CallKernel& call, std::span<const Tensor* const> arguments) {
  for (const Ready& ready : ready_[call.kernel]) {
    const bool fits =
        ready.onto == call.onto &&
        std::equal(arguments.begin(), arguments.end(), ready.arrays.begin(), ready.arrays.end(),
                   [](const Tensor* tensor, const ArrayLayout& layout) { return has_layout(*tensor, layout); });
    if (fits) return &ready.kernel;
  }
  return nullptr;
}

const ChunkKernel& ChunkKernels::operator()(const CallKernel& call, std::span<const Tensor* const> reads) {
  const std::span<const Tensor* const> arguments = arrays_of(call, reads);
  {
    const std::shared_lock lock(mutex_);
    if (const ChunkKernel* const known = find(call, arguments)) return *known;
  }
  const std::unique_lock lock(mutex_);
  if (const ChunkKernel* const known = find(call, arguments)) return *known;
  std::vector<ArrayLayout> layouts;
  for (const Tensor* const argument : arguments) layouts.push_back(layout_of(*argument));
  std::vector<ArrayLayout> all = layouts;
  all.resize(all.size() + call.numbers.size(), row_major_layout(DType::i64, {}));
  ChunkKernel kernel(graph_.kernels[call.kernel], all, scalars_, call.onto);
  return ready_[call.kernel].emplace_back(Ready{call.onto, std::move(layouts), std::move(kernel)}).kernel;
}

std::optional<Tensor> part_in_place(const ReadInput& read, const Tensor& whole, const Shape& bound) {
  const Tensor part = whole.box(read.begin, bound);
  if (!read.is_shared) return part;
  if (!part.is_row_major() || !layout_of(part).aligned) return std::nullopt;
  return part.row_major();
}

void copy_part(const ReadInput& read, const Tensor& whole, const Shape& bound, std::byte* to) {
  const Tensor part = whole.box(read.begin, bound);
  copy_elements(part.dtype(), part.shape(), {part.data(), part.strides()}, to, row_major_strides(bound));
}

void copy_boxes(const CopyBoxes& copy, std::span<const Tensor* const> reads, const Shape& bound, std::byte* to) {
  const Strides strides = row_major_strides(bound);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const CopyBoxes::Box& box = copy.boxes[i];
    const Tensor from = reads[i]->box(box.from, box.bound);
    const auto size = static_cast<std::int64_t>(size_of(from.dtype()));
    copy_elements(from.dtype(), box.bound, {from.data(), from.strides()}, to + offset_of(box.to, strides) * size,
                  strides);
  }
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

TaskClock::TaskClock(const TaskGraph& graph, std::size_t task, int thread, TaskProgress* progress)
    : graph_(graph), progress_(progress), start_(std::chrono::steady_clock::now()) {
  span_ = {task, seconds_now(), 0, thread, 0};
  if (progress_ != nullptr) progress_->task = task;
}

TaskSpan TaskClock::stop(std::int64_t live_bytes) const {
  TaskSpan span = span_;
  span.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  span.live_bytes = live_bytes;
  if (progress_ != nullptr) {
    ++progress_->done;
    progress_->flops += flops_of(graph_.tasks[span.task]);
  }
  return span;
}

Tensor borrowed(const TaskArray& array, const std::byte* data) {
  return {array.dtype, array.bound, row_major_strides(array.bound), data, nullptr};
}

}  // namespace einrel
