#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "exec/executors/executor.h"
#include "exec/tasks/prepared_tasks.h"
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
  /// Both must outlive it.
  ArrayStore(const PreparedTasks& tasks, const TaskBindings& bindings);

  /// Throws what kernels, inputs and outputs throw.
  void run(std::size_t task, Workers& workers);
  /// No task needs the array any more.
  void free(ArrayId array) { places_[array.index] = {}; }

 private:
  /// Where an array lies.
  struct Place {
    const std::byte* data = nullptr;
    std::byte* writable = nullptr;       ///< of what tasks made
    std::shared_ptr<const void> memory;  ///< of parts of inputs none
  };
  class Body;

  const PreparedTasks& tasks_;
  const TaskGraph& graph_;
  const TaskBindings& bindings_;
  std::vector<Place> places_;  // by array
};

/// The same for tasks that are timed, and free what none after them needs.
class TimedArrays {
 public:
  TimedArrays(const PreparedTasks& tasks, const TaskBindings& bindings);

  /// Runs a task, and counts it as done.
  TaskSpan run(std::size_t task, int thread, Workers& workers);

 private:
  const TaskGraph& graph_;
  TaskProgress* progress_;
  ArrayStore arrays_;
  LiveArrays live_;
};

}  // namespace einrel
