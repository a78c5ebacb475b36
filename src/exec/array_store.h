#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "exec/executor.h"
#include "exec/task_body.h"
#include "kernel/workers.h"

namespace einrel {

/// Which arrays of a run are alive, and the bytes of them: from before the task that makes one runs until the last of
/// those that read it is done. Any thread.
class LiveArrays {
 public:
  explicit LiveArrays(const TaskGraph& graph);
  /// From now on it is alive.
  void begin(ArrayId array);
  /// So is what the task makes in memory of its own.
  void begin(const Task& task);
  /// Once by the task that makes it, when it is done, and by each that reads it, as often as it does: whether that was
  /// the last time.
  bool end_use(ArrayId array);
  std::int64_t bytes() const { return bytes_; }

 private:
  const TaskGraph& graph_;
  std::vector<std::atomic<std::uint32_t>> uses_;  // to come
  std::atomic<std::int64_t> bytes_ = 0;
};

/// The arrays of a run in one process whose sites share memory, and what tasks do to them. Inputs are used in place.
/// Tasks may run on several threads at once, each once those are done that make what it reads.
class ArrayStore {
 public:
  ArrayStore(const TaskGraph& graph, const TaskBindings& bindings);

  /// Runs a task, and frees what no other needs any more. Throws what kernels, inputs and outputs throw.
  TaskSpan run(std::size_t task, int thread, Workers& workers);

 private:
  class Body;
  const TaskGraph& graph_;
  const TaskBindings& bindings_;
  KernelsOfRun kernels_;
  LiveArrays live_;
  std::vector<std::optional<Tensor>> arrays_;
};

}  // namespace einrel
