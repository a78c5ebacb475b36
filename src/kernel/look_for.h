#pragma once

#include <chrono>
#include <thread>

namespace einrel {

/// Waits for a while without going to sleep: waking up takes longer than many stages of small programs, and than many
/// tasks.
template <class Condition>
void look_for(Condition&& condition) {
  constexpr std::chrono::microseconds long_enough{50};
  const auto start = std::chrono::steady_clock::now();
  while (!condition() && std::chrono::steady_clock::now() - start < long_enough) std::this_thread::yield();
}

}  // namespace einrel
