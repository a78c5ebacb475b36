#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <queue>
#include <span>
#include <vector>

namespace einrel {

/// The numbers of tasks that could run, for threads that take them, the least first. Any thread.
class ReadyTasks {
 public:
  void add(std::span<const std::size_t> tasks);
  /// Adds some, and takes the first of all; waits while there is none. nullopt when the run is over.
  std::optional<std::size_t> next(std::span<const std::size_t> more);
  /// From now on nobody gets a task.
  void end();

 private:
  void push(std::span<const std::size_t> tasks);
  /// Until there is one, or the run is over.
  void wait(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable wake_;
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> tasks_;
  std::size_t sleepers_ = 0;
  // Changed under the mutex, but looked at without it.
  std::atomic<std::size_t> count_ = 0;
  std::atomic<bool> is_over_ = false;
};

}  // namespace einrel
