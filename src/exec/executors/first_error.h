#pragma once

#include <atomic>
#include <exception>
#include <mutex>

namespace einrel {

/// The first error of a run, for the caller: nothing is thrown out of the threads that run tasks. Once there is one,
/// tasks need do nothing more. Any thread.
class FirstError {
 public:
  /// Keeps the exception that is being handled, if it is the first.
  void keep();
  explicit operator bool() const { return failed_; }
  /// Nothing if there is none.
  std::exception_ptr get() const;

 private:
  std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace einrel
