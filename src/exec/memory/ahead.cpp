#include "exec/memory/ahead.h"

#include <span>

namespace einrel {

std::size_t TasksAhead::end(std::size_t done) {
  for (; done_ < done; ++done_) bytes_ -= freed_after(done_);
  for (; end_ < graph_.tasks.size(); ++end_) {
    const std::int64_t made = made_by(graph_.tasks[end_]);
    if (end_ > done_ && made > most_bytes_ - bytes_) break;
    bytes_ += made;
  }
  return end_;
}

std::int64_t TasksAhead::made_by(const Task& task) const {
  return !task.makes.empty() && is_here(task.makes.front()) ? bytes_made(graph_, task) : 0;
}

std::int64_t TasksAhead::freed_after(std::size_t task) const {
  const std::optional<ArrayId> taken = overwritten(graph_.tasks[task]);  // its memory lives on
  std::int64_t bytes = 0;
  for (const ArrayId array : last_uses_[task]) {
    if (is_here(array) && taken != array) bytes += bytes_of(graph_[array]);
  }
  return bytes;
}

}  // namespace einrel
