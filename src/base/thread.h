#pragma once

#include <cstddef>
#include <system_error>
#include <thread>
#include <utility>

namespace einrel {

/// Throws RunError, with the remedy: the system gives no threads, or not so many.
[[noreturn]] void throw_no_threads(std::size_t threads, const std::system_error& error);

/// A thread that does this; it may take a std::stop_token. Throws RunError where the system gives none.
template <class Action>
std::jthread start_thread(Action action) {
  try {
    return std::jthread(std::move(action));
  } catch (const std::system_error& error) {
    throw_no_threads(1, error);
  }
}

}  // namespace einrel
