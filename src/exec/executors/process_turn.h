#pragma once

#include <stop_token>

namespace einrel {

/// What a process can do for one run at a time: have StarPU, or keep within a limit of its memory. Others wait.
class ProcessTurn {
 public:
  /// Once nobody else has it. Throws Stopped where a stop is asked for before that.
  explicit ProcessTurn(const std::stop_token& stop);
  ~ProcessTurn();
  ProcessTurn(const ProcessTurn&) = delete;
  ProcessTurn& operator=(const ProcessTurn&) = delete;
};

}  // namespace einrel
