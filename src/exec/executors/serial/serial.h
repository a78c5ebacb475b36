#pragma once

#include <cstddef>
#include <optional>
#include <stop_token>

#include "exec/executors/executor.h"
#include "exec/executors/process_turn.h"
#include "exec/executors/serial/shared_workers.h"
#include "kernel/workers.h"
#include "tensor/memory_pool.h"

namespace einrel {

/// Runs tasks in their order, each on all threads; what is sent is not copied. An array's memory is freed after its
/// last use.
class SerialExecutor : public Executor {
 public:
  /// On threads of this process that others compute on after a run.
  explicit SerialExecutor(std::size_t threads) : threads_(threads) {}
  /// Within a limit of memory, for which others wait: on threads of its own, with so much slack in the memory for
  /// arrays, and nothing kept when it is not at work.
  SerialExecutor(std::size_t threads, Slack slack) : threads_(threads), slack_(slack) {}

  /// Throws as ProcessTurn and Workers do.
  void begin(const std::stop_token& stop) override;
  TaskReport run(const PreparedTasks& tasks, const TaskBindings& bindings) override;
  void end() override;

 private:
  struct Own {
    Own(const std::stop_token& stop, std::size_t threads, Slack slack)
        : turn(stop), workers(threads, false, MemoryPool(slack)) {}
    ProcessTurn turn;
    Workers workers;
  };

  std::size_t threads_;
  std::optional<Slack> slack_;
  std::optional<Own> own_;
  std::optional<SharedWorkers> shared_;  // else
  Workers* workers_ = nullptr;           // those of a run
};

}  // namespace einrel
