#pragma once

#include <cstddef>
#include <optional>
#include <stop_token>

#include "exec/executors/executor.h"
#include "exec/executors/serial/shared_workers.h"

namespace einrel {

/// Runs the tasks of graphs side by side, each on one of threads of this process that others compute on after a run.
/// The calling thread is one of them.
class TaskThreads : public Executor {
 public:
  /// On 1 to most_threads of them.
  explicit TaskThreads(std::size_t threads) : threads_(threads) {}

  void begin(const std::stop_token& stop) override;
  /// Of a graph whose sites share memory. Tasks that come first in the graph go first, as far as they can, and get
  /// their turn in this order (TaskTurns). When a task throws, no other begins.
  TaskReport run(const PreparedTasks& tasks, const TaskBindings& bindings) override;
  void end() override;

 private:
  std::size_t threads_;
  std::optional<SharedWorkers> workers_;  ///< at work
};

}  // namespace einrel
