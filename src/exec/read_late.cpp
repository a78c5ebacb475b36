#include "exec/read_late.h"

#include <optional>
#include <utility>
#include <vector>

namespace einrel {

void read_late(TaskGraph& graph) {
  std::vector<std::optional<Task>> waiting(graph.arrays.size());  // by the array that they make
  std::vector<Task> tasks;
  tasks.reserve(graph.tasks.size());
  for (Task& task : graph.tasks) {
    if (std::holds_alternative<ReadInput>(task.op)) {
      waiting[task.makes.front().index] = std::move(task);
      continue;
    }
    for (const ArrayId read : task.reads) {
      if (std::optional<Task> needed = std::exchange(waiting[read.index], std::nullopt))
        tasks.push_back(std::move(*needed));
    }
    tasks.push_back(std::move(task));
  }
  graph.tasks = std::move(tasks);
}

}  // namespace einrel
