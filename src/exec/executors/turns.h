#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "exec/memory/ahead.h"
#include "exec/tasks/prepared_tasks.h"

namespace einrel {

/// Which tasks of a run may begin: they get their turn in the order of the graph, as TasksAhead lets them run ahead of
/// the first that is not done. On ranks, each of which has turns of its own, this locks up nothing: the first task of
/// all that is not done has its turn everywhere. Any thread.
class TaskTurns {
 public:
  /// Some that follow each other in the graph.
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  /// Of all tasks or, where each site has a memory, of those of one: all others count as done.
  TaskTurns(const PreparedTasks& tasks, std::int64_t most_bytes, std::optional<Site> site);

  /// Those that have their turn when the run begins.
  Range first() const { return {0, first_}; }
  /// A task is done, of those that had their turn: which get it by that.
  Range end_task(std::size_t task);
  /// Until it is a task's turn.
  void wait_for(std::size_t task);

 private:
  std::mutex mutex_;  ///< guards what follows
  std::condition_variable later_;
  TasksAhead ahead_;
  std::vector<bool> is_done_;
  std::size_t done_ = 0;  ///< the first that is not
  std::size_t end_ = 0;   ///< of those that had their turn
  std::size_t first_ = 0;
};

}  // namespace einrel
