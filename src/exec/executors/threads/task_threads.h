#pragma once

#include <cstddef>
#include <deque>
#include <stop_token>

#include "exec/executors/executor.h"
#include "kernel/workers.h"

namespace einrel {

/// Threads that run the tasks of graphs side by side, each task on one of them. They stay from run to run, with the
/// workspaces of kernels and memory for arrays. One run at a time; the calling thread is one of the threads.
class TaskThreads : public Executor {
 public:
  /// Tasks that may have had their turn and are not done: they run, or wait for others.
  static constexpr std::size_t most_ahead = 512;

  /// 1 to most_threads of them. Throws RunError when the system does not give them.
  explicit TaskThreads(std::size_t threads);

  void begin(const std::stop_token& stop) override;
  /// Of a graph whose sites share memory. Tasks that come first in the graph go first, as far as they can, and get
  /// their turn in this order, so that little is alive at a time. When a task throws, no other begins.
  TaskReport run(const PreparedTasks& tasks, const TaskBindings& bindings) override;
  void end() override { begin({}); }

 private:
  Workers team_;
  std::deque<Workers> alone_;  ///< by thread: what a task runs on
};

}  // namespace einrel
