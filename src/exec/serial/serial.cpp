#include "exec/serial/serial.h"

#include <chrono>

#include "exec/array_store.h"

namespace einrel {

TaskReport run_serial(const PreparedTasks& tasks, const TaskBindings& bindings, Workers& workers) {
  const auto start = std::chrono::steady_clock::now();
  TaskReport report;
  TimedArrays arrays(tasks, bindings);
  const std::size_t count = tasks.graph().tasks.size();
  for (std::size_t t = 0; t < count; ++t) report.spans.push_back(arrays.run(t, 0, workers));
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

void run_unreported(const PreparedTasks& tasks, const std::vector<std::vector<ArrayId>>& freed,
                    const TaskBindings& bindings, Workers& workers) {
  ArrayStore arrays(tasks, bindings);
  for (std::size_t t = 0; t < freed.size(); ++t) {
    arrays.run(t, workers);
    for (const ArrayId array : freed[t]) arrays.free(array);
  }
}

}  // namespace einrel
