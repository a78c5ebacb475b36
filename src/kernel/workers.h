#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>

#include "kernel/kernel.h"
#include "tensor/memory_pool.h"

namespace einrel {

inline constexpr std::size_t most_threads = 1024;

/// Threads that compute the parts of kernels, the workspaces they use, and memory for results, which are kept from call
/// to call. The calling thread is one of the threads. One call at a time.
class Workers {
 public:
  /// `threads` is 1 to most_threads. `give_way`: between parts they let others have their cores for a moment; one that
  /// looks for messages, say, may have to wait for milliseconds else. `pool`: where results get their memory. Throws
  /// RunError when the system does not give the threads.
  explicit Workers(std::size_t threads = 1, bool give_way = false, MemoryPool pool = MemoryPool());
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  std::size_t threads() const;
  /// For results.
  MemoryPool& pool() { return pool_; }

  /// Runs from now on end some milliseconds after a stop is asked for (throw_if_cancelled.h), and RunError is thrown.
  /// Between two runs.
  void cancel_on(const std::stop_token& stop);
  /// The same where somebody else knows: `is_to_stop` is asked every few microseconds, by any of the threads.
  void cancel_when(std::function<bool()> is_to_stop);

  /// Runs all stages. What a part throws is thrown here, after the others have ended. Throws RunError when there is no
  /// memory for the workspaces: own_bytes for each thread, shared_bytes once.
  void run(const PreparedKernel& kernel, const Arrays& arrays);

 private:
  struct Team;
  std::unique_ptr<Team> team_;
  MemoryPool pool_;
};

/// The cores that this process may use.
std::size_t available_cores();

}  // namespace einrel
