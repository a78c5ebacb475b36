#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "exec/chunk_kernel.h"
#include "exec/executor.h"

namespace einrel {

/// Makes the kernels of a graph ready, once per layout of their arguments. One thread at a time.
class ChunkKernels {
 public:
  ChunkKernels(const TaskGraph& graph, const ScalarBindings& scalars) : graph_(graph), scalars_(scalars) {}
  /// For arguments of these layouts; lives as long as this. Throws as ChunkKernel does.
  const ChunkKernel& operator()(const CallKernel& call, const std::vector<ArrayLayout>& arguments);

 private:
  using Layouts = std::vector<std::tuple<Shape, Strides, bool>>;
  const TaskGraph& graph_;
  const ScalarBindings& scalars_;
  std::map<std::pair<std::size_t, Layouts>, std::unique_ptr<ChunkKernel>> ready_;
};

/// Makes the array of a CopyBoxes, row-major, of this bound.
void copy_boxes(const CopyBoxes& copy, std::span<const Tensor> reads, const Shape& bound, std::byte* to);
/// Makes the array of a MakePositions.
void make_positions(const MakePositions& positions, const Shape& bound, std::byte* to);

/// Times a task and counts it as done when it goes.
class TaskClock {
 public:
  TaskClock(const TaskGraph& graph, std::size_t task, int thread, TaskProgress* progress, TaskSpan& span);
  ~TaskClock();
  TaskClock(const TaskClock&) = delete;
  TaskClock& operator=(const TaskClock&) = delete;

 private:
  const TaskGraph& graph_;
  TaskProgress* progress_;
  TaskSpan& span_;
  std::chrono::steady_clock::time_point start_;
};

/// A tensor of memory that someone else keeps.
Tensor borrowed(const TaskArray& array, const std::byte* data);

}  // namespace einrel
