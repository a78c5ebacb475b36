#include "exec/tasks/read_late.h"

#include <optional>
#include <utility>
#include <vector>

namespace einrel {
namespace {

/// A part of an input while tasks are put in order.
struct Part {
  Task read;
  std::int64_t needed = 0;  ///< bytes that had been made when a task needed it last
  bool is_read = false;
};

class LateReads {
 public:
  LateReads(TaskGraph& graph, std::int64_t most_bytes)
      : graph_(graph), most_bytes_(most_bytes), parts_(graph.arrays.size()) {}

  std::vector<Task> tasks() {
    tasks_.reserve(graph_.tasks.size());
    for (Task& task : graph_.tasks) {
      if (std::holds_alternative<ReadInput>(task.op)) {
        std::optional<Part>& part = parts_[task.makes.front().index];
        part = Part{std::move(task)};
        continue;
      }
      for (ArrayId& read : task.reads) {
        if (std::optional<Part>& part = parts_[read.index]) read = needed(*part);
      }
      made_ += bytes_made(graph_, task);
      tasks_.push_back(std::move(task));
    }
    return std::move(tasks_);
  }

 private:
  /// The array to read it from.
  ArrayId needed(Part& part) {
    ArrayId& made = part.read.makes.front();
    if (part.is_read && made_ - part.needed > most_bytes_) {
      const TaskArray array = graph_[made];
      made = {graph_.arrays.size()};
      graph_.arrays.push_back(array);
      part.is_read = false;
    }
    if (!part.is_read) {
      made_ += bytes_of(graph_[made]);
      tasks_.push_back(part.read);
    }
    part.is_read = true;
    part.needed = made_;
    return made;
  }

  TaskGraph& graph_;
  std::int64_t most_bytes_;
  std::int64_t made_ = 0;
  std::vector<std::optional<Part>> parts_;  // by the array that they were read into at first
  std::vector<Task> tasks_;
};

}  // namespace

void read_late(TaskGraph& graph, std::int64_t most_bytes) { graph.tasks = LateReads(graph, most_bytes).tasks(); }

}  // namespace einrel
