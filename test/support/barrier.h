#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace einrel::test {

/// Where threads wait for each other, but not for ever.
class Barrier {
 public:
  explicit Barrier(int count) : count_(count) {}

  void arrive() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    wake_.notify_all();
    constexpr std::chrono::seconds long_enough{60};
    if (!wake_.wait_for(lock, long_enough, [this] { return arrived_ >= count_; })) late_ = true;
  }
  /// Each met all others.
  bool all_came() {
    const std::lock_guard lock(mutex_);
    return arrived_ >= count_ && !late_;
  }

 private:
  int count_;
  std::mutex mutex_;
  std::condition_variable wake_;
  int arrived_ = 0;
  bool late_ = false;
};

}  // namespace einrel::test
