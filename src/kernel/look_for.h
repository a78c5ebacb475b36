#pragma once

#include <chrono>
#include <thread>

#include "machine/processor.h"

namespace einrel {

/// Waits for a while without going to sleep: waking up takes longer than many stages of small programs, and than many
/// tasks.
template <class Condition>
void look_for(Condition&& condition) {
  constexpr std::chrono::duration<double> long_enough{2.5 * nominal_processor.wake_seconds};
  const auto start = std::chrono::steady_clock::now();
  while (!condition() && std::chrono::steady_clock::now() - start < long_enough) std::this_thread::yield();
}

}  // namespace einrel
