#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace einrel {

/// While MPI starts, which waits for all ranks: looks at those of this machine, and ends this process, with a message
/// that names the rank and exit code 2, where one of them stands still by a signal, or is not there. Whoever started
/// the job then ends all others of it. A rank that is stopped before its guard is there (base/guard.h) is seen by
/// nobody else. See StartHindrance for what is concluded of what is seen.
class StartWatch {
 public:
  /// `timeout`: seconds, of a rank that is stopped; of one that is not there at least 10.
  explicit StartWatch(double timeout);
  /// MPI has started.
  ~StartWatch();
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace einrel
