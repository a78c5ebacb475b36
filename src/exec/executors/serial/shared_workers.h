#pragma once

#include <cstddef>
#include <deque>
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

  Workers& operator*() const { return team_->all; }
  /// By thread, what runs in it alone, with results in the same memory.
  std::deque<Workers>& alone() const;

  /// Ends those that nobody computes on, with the memory that they keep for results to come.
  static void end_idle();

 private:
  struct Team {
    explicit Team(std::size_t threads) : all(threads) {}
    Workers all;
    std::deque<Workers> alone;  ///< once they are asked for
  };
  struct Idle;
  static std::unique_ptr<Idle>& idle_of_process();

  std::unique_ptr<Team> team_;
};

}  // namespace einrel
