#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "exec/tasks/task_graph.h"

namespace einrel {

/// Bytes of arrays, where nobody bounds them.
constexpr std::int64_t any_bytes = std::numeric_limits<std::int64_t>::max();

/// How far tasks may run ahead of the first that is not done, so that the arrays that were begun and may still be
/// needed never take more than so many bytes, in whatever order tasks run and end. Where one task after the other needs
/// more than that, it is this order.
class TasksAhead {
 public:
  /// Of all arrays or, where every site has a memory, of those of one. Both must outlive it.
  TasksAhead(const TaskGraph& graph, const LastUses& last_uses, std::int64_t most_bytes, std::optional<Site> site)
      : graph_(graph), last_uses_(last_uses), most_bytes_(most_bytes), site_(site) {}

  /// While the first `done` tasks are done (all, or all of the site), and any of the later ones: the end of those that
  /// may begin, at least one of them where there are any. `done` never falls. O(tasks) for all calls together.
  std::size_t end(std::size_t done);

 private:
  bool is_here(ArrayId array) const { return !site_ || graph_[array].site == *site_; }
  std::int64_t made_by(const Task& task) const;
  std::int64_t freed_after(std::size_t task) const;

  const TaskGraph& graph_;
  const LastUses& last_uses_;
  std::int64_t most_bytes_;
  std::optional<Site> site_;
  std::size_t done_ = 0;
  std::size_t end_ = 0;
  std::int64_t bytes_ = 0;  // of arrays that tasks before end_ make, and some task from done_ on may read
};

}  // namespace einrel
