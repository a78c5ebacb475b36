#pragma once

#include <chrono>
#include <list>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "exec/executors/executor.h"
#include "exec/tasks/chunk_kernel.h"

namespace einrel {

/// Makes the kernels of a graph ready, once per layout of their arguments, and once for all that compute the same: the
/// steps of an unrolled recurrence, say.
class ChunkKernels {
 public:
  ChunkKernels(const TaskGraph& graph, ScalarBindings scalars)
      : graph_(graph), scalars_(std::move(scalars)), alike_(graph.kernels.size(), nullptr) {}
  /// Values for the scalars from now on: kernels that read none that changes stay. While nobody calls one. Returns how
  /// often that was to other values.
  std::size_t rebind(const ScalarBindings& scalars);
  /// For a task whose arguments, numbers apart, are arrays that lie as these; lives as long as this. Throws as
  /// ChunkKernel does.
  const ChunkKernel& operator()(const CallKernel& call, std::span<const ArrayLayout> arguments);

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
  const ChunkKernel* find(const CallKernel& call, std::span<const ArrayLayout> arguments) const;
  Alike& alike(std::size_t kernel);

  const TaskGraph& graph_;
  ScalarBindings scalars_;
  std::unordered_multimap<std::size_t, Alike> by_hash_;
  std::vector<Alike*> alike_;  // per kernel, once it was called
  std::size_t changes_ = 0;
};

/// Whether a kernel reads one of these scalars.
bool reads_scalar(const TaskKernel& kernel, const std::set<std::string>& names);

/// A part of an input where it lies.
struct PartInPlace {
  std::size_t input = 0;  ///< of TaskGraph::inputs
  ArrayLayout layout;
  std::int64_t place = 0;  ///< bytes from the first element of the input to its own
};
/// By task, the array of a ReadInput if it is used where it lies, of inputs that lie so (nothing of one that is made
/// piece by piece). Not if several sites read it and it does not lie as what is sent arrives, row-major and aligned;
/// nor if a kernel views it in a way that would take a copy in each call.
std::vector<std::optional<PartInPlace>> parts_in_place(const TaskGraph& graph,
                                                       const std::vector<std::optional<ArrayLayout>>& inputs);
std::vector<std::optional<ArrayLayout>> layouts_of(const std::vector<InputSource>& inputs);
/// Makes it elsewhere, row-major.
void read_part(const ReadInput& read, const InputSource& source, const Shape& bound, std::byte* to);
/// The same in memory that lasts, if it was not made before.
const Tensor& kept_part(const ReadInput& read, const InputSource& source, const TaskArray& array,
                        std::optional<Tensor>& kept);
/// Makes the array of a CopyBoxes, row-major.
void copy_boxes(const CopyBoxes& copy, std::span<const Tensor* const> reads, const TaskArray& made, std::byte* to);

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
