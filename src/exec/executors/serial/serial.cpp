#include "exec/executors/serial/serial.h"

#include <chrono>

#include "exec/memory/array_store.h"
#include "exec/tasks/prepared_tasks.h"

namespace einrel {

void SerialExecutor::begin(const std::stop_token& stop) {
  if (slack_) {
    own_.emplace(stop, threads_, *slack_);
    workers_ = &own_->workers;
  } else {
    shared_.emplace(threads_);
    workers_ = &**shared_;
  }
  workers_->cancel_on(stop);
}

void SerialExecutor::end() {
  workers_->cancel_on({});
  shared_.reset();
  own_.reset();
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
