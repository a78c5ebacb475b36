#include "exec/tasks/cut_parts_out.h"

#include <iterator>
#include <utility>
#include <vector>

namespace einrel {
namespace {

/// One read needs no other array than the one that it is cut out of.
bool has_parts_to_cut_out(const TaskGraph& graph, const Task& task, std::int64_t most_bytes) {
  return std::holds_alternative<CopyBoxes>(task.op) && task.reads.size() > 1 && bytes_needed(graph, task) > most_bytes;
}

}  // namespace

void cut_parts_out(TaskGraph& graph, std::int64_t most_bytes) {
  std::vector<std::vector<Task>> cutting(graph.arrays.size());  // by the array that they cut
  std::vector<IaId> makers(graph.arrays.size());
  for (Task& task : graph.tasks) {
    for (const ArrayId made : task.makes) makers[made.index] = task.node;
    if (!has_parts_to_cut_out(graph, task, most_bytes)) continue;
    std::vector<CopyBoxes::Box>& boxes = std::get<CopyBoxes>(task.op).boxes;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      const ArrayId whole = task.reads[i];
      TaskArray part = graph[whole];
      if (boxes[i].bound == part.bound) continue;
      const std::vector<std::int64_t> first(part.bound.size(), 0);
      part.bound = boxes[i].bound;
      const ArrayId made{graph.arrays.size()};
      graph.arrays.push_back(std::move(part));
      cutting[whole.index].push_back(
          {CopyBoxes{{{boxes[i].from, first, boxes[i].bound}}, std::nullopt}, {whole}, {made}, makers[whole.index]});
      task.reads[i] = made;
      boxes[i].from = first;
    }
  }
  std::vector<Task> tasks;
  for (Task& task : graph.tasks) {
    const std::vector<ArrayId> makes = task.makes;
    tasks.push_back(std::move(task));
    for (const ArrayId made : makes)
      std::move(cutting[made.index].begin(), cutting[made.index].end(), std::back_inserter(tasks));
  }
  graph.tasks = std::move(tasks);
}

}  // namespace einrel
