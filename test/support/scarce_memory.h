#pragma once

#include <starpu.h>

#include <algorithm>
#include <cstdint>

#include "exec/executors/starpu/session.h"
#include "exec/tasks/task_graph.h"

namespace einrel::test {

/// The memory of a session with a limit of which so little is left while this lives that the largest tasks of a graph
/// just fit, several at a time: all else goes to disk.
class ScarceMemory {
 public:
  /// Of sessions.
  static constexpr std::int64_t limit = 1;

  ScarceMemory(const TaskGraph& graph, std::int64_t tasks_at_once) {
    std::int64_t task_bytes = 0;
    for (const Task& task : graph.tasks) task_bytes = std::max(task_bytes, bytes_needed(graph, task));
    taken_ = static_cast<std::size_t>(std::max<std::int64_t>(0, chunk_memory(limit, 1) - tasks_at_once * task_bytes));
    starpu_memory_allocate(STARPU_MAIN_RAM, taken_, STARPU_MEMORY_OVERFLOW);
  }
  ~ScarceMemory() { starpu_memory_deallocate(STARPU_MAIN_RAM, taken_); }
  ScarceMemory(const ScarceMemory&) = delete;
  ScarceMemory& operator=(const ScarceMemory&) = delete;

 private:
  std::size_t taken_ = 0;
};

}  // namespace einrel::test
