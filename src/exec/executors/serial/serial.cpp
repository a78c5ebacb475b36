#include "exec/executors/serial/serial.h"

#include <chrono>

#include "exec/memory/array_store.h"
#include "exec/tasks/prepared_tasks.h"

namespace einrel {

SerialExecutor::SerialExecutor(std::size_t threads, const MemoryPool& pool)
    : threads_(threads), own_(std::make_unique<Workers>(threads, false, pool)) {}

void SerialExecutor::begin(const std::stop_token& stop) {
  if (!own_) shared_.emplace(threads_);
  workers_ = own_ ? own_.get() : &**shared_;
  workers_->cancel_on(stop);
}

void SerialExecutor::end() {
  workers_->cancel_on({});
  shared_.reset();
}

TaskReport SerialExecutor::run(const PreparedTasks& tasks, const TaskBindings& bindings) {
  const auto start = std::chrono::steady_clock::now();
  const std::size_t count = tasks.graph().tasks.size();
  TaskReport report;
  if (bindings.is_timed) {
    TimedArrays arrays(tasks, bindings);
    for (std::size_t t = 0; t < count; ++t) report.spans.push_back(arrays.run(t, 0, *workers_));
  } else {
    ArrayStore arrays(tasks, bindings);
    for (std::size_t t = 0; t < count; ++t) {
      arrays.run(t, *workers_);
      for (const ArrayId array : tasks.last_used_by(t)) arrays.free(array);
    }
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace einrel
