#pragma once

#include <cstddef>
#include <memory>

#include "kernel/workers.h"

namespace einrel {

/// Threads to compute on, for as long as this lives: those of a run that has ended, if there are any, else new ones. So
/// a process has as many as runs at a time, however many programs it keeps. A forked process has its own.
class SharedWorkers {
 public:
  /// Throws RunError when the system does not give the threads.
  explicit SharedWorkers(std::size_t threads);
  ~SharedWorkers();
  SharedWorkers(const SharedWorkers&) = delete;
  SharedWorkers& operator=(const SharedWorkers&) = delete;

  Workers& operator*() const { return *workers_; }

 private:
  std::unique_ptr<Workers> workers_;
};

}  // namespace einrel
