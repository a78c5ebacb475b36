#include "exec/executors/threads/ready_tasks.h"

#include "kernel/look_for.h"

namespace einrel {

void ReadyTasks::add(std::span<const std::size_t> tasks) {
  const std::lock_guard lock(mutex_);
  push(tasks);
}

std::optional<std::size_t> ReadyTasks::next(std::span<const std::size_t> more) {
  std::unique_lock lock(mutex_);
  push(more);
  if (tasks_.empty()) wait(lock);
  if (is_over_) return std::nullopt;
  const std::size_t first = tasks_.top();
  tasks_.pop();
  count_ = tasks_.size();
  // Whoever takes one wakes one for the next: nobody wakes many.
  const bool wakes = !tasks_.empty() && sleepers_ > 0;
  lock.unlock();
  if (wakes) wake_.notify_one();
  return first;
}

void ReadyTasks::end() {
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  wake_.notify_all();
}

void ReadyTasks::push(std::span<const std::size_t> tasks) {
  for (const std::size_t task : tasks) tasks_.push(task);
  count_ = tasks_.size();
}

void ReadyTasks::wait(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  look_for([this] { return count_ > 0 || is_over_; });
  lock.lock();
  ++sleepers_;
  wake_.wait(lock, [this] { return !tasks_.empty() || is_over_; });
  --sleepers_;
}

}  // namespace einrel
