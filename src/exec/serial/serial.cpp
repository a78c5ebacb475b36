#include "exec/serial/serial.h"

#include <chrono>

#include "exec/array_store.h"

namespace einrel {

TaskReport run_serial(const TaskGraph& graph, const TaskBindings& bindings, Workers& workers) {
  const auto start = std::chrono::steady_clock::now();
  TaskReport report;
  ArrayStore arrays(graph, bindings);
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) report.spans.push_back(arrays.run(t, 0, workers));
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace einrel
