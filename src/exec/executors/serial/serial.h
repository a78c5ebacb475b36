#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>

#include "exec/executors/executor.h"
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
  /// On threads of its own, arrays being in memory of this pool. Throws RunError when the system does not give them.
  SerialExecutor(std::size_t threads, const MemoryPool& pool);

  void begin(const std::stop_token& stop) override;
  TaskReport run(const PreparedTasks& tasks, const TaskBindings& bindings) override;
  void end() override;

 private:
  std::size_t threads_;
  std::unique_ptr<Workers> own_;
  std::optional<SharedWorkers> shared_;  // else
  Workers* workers_ = nullptr;           // those of a run
};

}  // namespace einrel
