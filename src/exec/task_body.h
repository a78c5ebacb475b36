#pragma once

#include <chrono>
#include <list>
#include <optional>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "exec/chunk_kernel.h"
#include "exec/executor.h"

namespace einrel {

/// Makes the kernels of a graph ready, once per layout of their arguments, and once for all that compute the same: the
/// steps of an unrolled recurrence, say. Any thread.
class ChunkKernels {
 public:
  ChunkKernels(const TaskGraph& graph, ScalarBindings scalars)
      : graph_(graph), scalars_(std::move(scalars)), alike_(graph.kernels.size(), nullptr) {}
  const ScalarBindings& scalars() const { return scalars_; }
  /// For a task that reads arrays that lie as these; lives as long as this. Throws as ChunkKernel does.
  const ChunkKernel& operator()(const CallKernel& call, std::span<const Tensor* const> reads);

 private:
  struct Ready {
    bool onto = false;
    std::vector<ArrayLayout> arrays;
    ChunkKernel kernel;
  };
  /// What kernels compute that differ by their names alone.
  struct Alike {
    const TaskKernel& first;
    std::list<Ready> ready;  ///< few, since chunks of a tensor differ at its ends only
  };
  const ChunkKernel* find(const CallKernel& call, std::span<const Tensor* const> arguments) const;
  Alike& alike(std::size_t kernel);

  const TaskGraph& graph_;
  ScalarBindings scalars_;
  std::shared_mutex mutex_;
  std::unordered_multimap<std::size_t, Alike> by_hash_;
  std::vector<Alike*> alike_;  // per kernel, once it was called
};

/// Those that a run is given, or its own.
class KernelsOfRun {
 public:
  KernelsOfRun(const TaskGraph& graph, const TaskBindings& bindings) {
    if (bindings.kernels == nullptr) own_.emplace(graph, bindings.scalars);
    kernels_ = own_ ? &*own_ : bindings.kernels;
  }
  KernelsOfRun(const KernelsOfRun&) = delete;
  KernelsOfRun& operator=(const KernelsOfRun&) = delete;
  ~KernelsOfRun() = default;
  const ChunkKernel& operator()(const CallKernel& call, std::span<const Tensor* const> reads) {
    return (*kernels_)(call, reads);
  }

 private:
  std::optional<ChunkKernels> own_;
  ChunkKernels* kernels_ = nullptr;
};

/// Where what a kernel is called with lies: arrays, then numbers, which lie in the task.
std::vector<const std::byte*> argument_data(const CallKernel& call, std::span<const Tensor* const> reads);

/// The array of a ReadInput, a box of this tensor, if it is used where it lies: not if several sites read it and it
/// does not lie as what is sent arrives, row-major and aligned.
std::optional<Tensor> part_in_place(const ReadInput& read, const Tensor& whole, const Shape& bound);
/// Makes it elsewhere, row-major.
void copy_part(const ReadInput& read, const Tensor& whole, const Shape& bound, std::byte* to);
/// Makes the array of a CopyBoxes, row-major, of this bound.
void copy_boxes(const CopyBoxes& copy, std::span<const Tensor* const> reads, const Shape& bound, std::byte* to);

/// Seconds since 1970.
double seconds_now();

/// Times a task, and counts it as done.
class TaskClock {
 public:
  TaskClock(const TaskGraph& graph, std::size_t task, int thread, TaskProgress* progress);
  /// To be called once, when it is done.
  TaskSpan stop(std::int64_t live_bytes) const;

 private:
  const TaskGraph& graph_;
  TaskProgress* progress_;
  TaskSpan span_;
  std::chrono::steady_clock::time_point start_;
};

/// A tensor of memory that someone else keeps.
Tensor borrowed(const TaskArray& array, const std::byte* data);

}  // namespace einrel
