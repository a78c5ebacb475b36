#pragma once

#include <memory>
#include <stop_token>

namespace einrel {

/// What a process can do for one run at a time: have StarPU, or keep within a limit of its memory. Others wait.
class ProcessTurn {
 public:
  /// Once nobody else has it; gives the system what was freed before, which would stay beside the run's memory. Throws
  /// Stopped where a stop is asked for before that.
  explicit ProcessTurn(const std::stop_token& stop);
  ~ProcessTurn();
  ProcessTurn(const ProcessTurn&) = delete;
  ProcessTurn& operator=(const ProcessTurn&) = delete;

 private:
  struct Turns;
  static const std::shared_ptr<Turns>& turns_of_process();

  std::shared_ptr<Turns> turns_;  ///< those that a static object gives back while the process ends
};

}  // namespace einrel
