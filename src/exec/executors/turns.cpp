#include "exec/executors/turns.h"

#include <utility>
#include <variant>

namespace einrel {
namespace {

bool is_of_site(const TaskGraph& graph, const Task& task, Site site) {
  return site_of(graph, task) == site ||
         (std::holds_alternative<Send>(task.op) && graph[task.reads.front()].site == site);
}

}  // namespace

TaskTurns::TaskTurns(const PreparedTasks& tasks, std::int64_t most_bytes, std::optional<Site> site)
    : ahead_(tasks.graph(), tasks.last_uses(), most_bytes, site), is_done_(tasks.graph().tasks.size(), false) {
  const TaskGraph& graph = tasks.graph();
  for (std::size_t t = 0; t < is_done_.size(); ++t) is_done_[t] = site && !is_of_site(graph, graph.tasks[t], *site);
  while (done_ < is_done_.size() && is_done_[done_]) ++done_;
  first_ = end_ = ahead_.end(done_);
}

TaskTurns::Range TaskTurns::end_task(std::size_t task) {
  const std::lock_guard lock(mutex_);
  is_done_[task] = true;
  if (task != done_) return {end_, end_};
  while (done_ < is_done_.size() && is_done_[done_]) ++done_;
  const std::size_t begin = std::exchange(end_, ahead_.end(done_));
  if (begin != end_) later_.notify_all();
  return {begin, end_};
}

void TaskTurns::wait_for(std::size_t task) {
  std::unique_lock lock(mutex_);
  later_.wait(lock, [&] { return task < end_; });
}

}  // namespace einrel
