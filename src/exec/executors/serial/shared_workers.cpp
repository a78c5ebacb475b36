#include "exec/executors/serial/shared_workers.h"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace einrel {
namespace {

/// Those that nobody computes on.
struct Idle {
  std::mutex mutex;
  std::vector<std::unique_ptr<Workers>> workers;
};

std::unique_ptr<Idle>& idle_of_process() {
  static std::unique_ptr<Idle> idle = [] {
    // Threads are not in a forked process: what belongs to them can neither run nor be destroyed there.
    pthread_atfork(nullptr, nullptr, [] {
      static_cast<void>(idle_of_process().release());
      idle_of_process() = std::make_unique<Idle>();
    });
    return std::make_unique<Idle>();
  }();
  return idle;
}

}  // namespace

SharedWorkers::SharedWorkers(std::size_t threads) {
  Idle& idle = *idle_of_process();
  {
    const std::lock_guard lock(idle.mutex);
    const auto found = std::find_if(idle.workers.rbegin(), idle.workers.rend(),
                                    [&](const auto& workers) { return workers->threads() == threads; });
    if (found != idle.workers.rend()) {
      workers_ = std::move(*found);
      idle.workers.erase(std::next(found).base());
      return;
    }
  }
  workers_ = std::make_unique<Workers>(threads);  // takes a while
}

SharedWorkers::~SharedWorkers() {
  constexpr std::size_t most_kept = 8;
  std::unique_ptr<Workers> left;  // ends without the lock
  Idle& idle = *idle_of_process();
  const std::lock_guard lock(idle.mutex);
  idle.workers.push_back(std::move(workers_));
  if (idle.workers.size() <= most_kept) return;
  left = std::move(idle.workers.front());
  idle.workers.erase(idle.workers.begin());
}

}  // namespace einrel
