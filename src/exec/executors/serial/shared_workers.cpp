#include "exec/executors/serial/shared_workers.h"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace einrel {

/// Those that nobody computes on.
struct SharedWorkers::Idle {
  std::mutex mutex;
  std::vector<std::unique_ptr<Team>> teams;
};

std::unique_ptr<SharedWorkers::Idle>& SharedWorkers::idle_of_process() {
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

SharedWorkers::SharedWorkers(std::size_t threads) {
  Idle& idle = *idle_of_process();
  {
    const std::lock_guard lock(idle.mutex);
    const auto found = std::find_if(idle.teams.rbegin(), idle.teams.rend(),
                                    [&](const auto& team) { return team->all.threads() == threads; });
    if (found != idle.teams.rend()) {
      team_ = std::move(*found);
      idle.teams.erase(std::next(found).base());
      return;
    }
  }
  team_ = std::make_unique<Team>(threads);  // takes a while
}

SharedWorkers::~SharedWorkers() {
  constexpr std::size_t most_kept = 8;
  std::unique_ptr<Team> left;  // ends without the lock
  Idle& idle = *idle_of_process();
  const std::lock_guard lock(idle.mutex);
  idle.teams.push_back(std::move(team_));
  if (idle.teams.size() <= most_kept) return;
  left = std::move(idle.teams.front());
  idle.teams.erase(idle.teams.begin());
}

std::deque<Workers>& SharedWorkers::alone() const {
  while (team_->alone.size() < team_->all.threads()) team_->alone.emplace_back(1, false, team_->all.pool());
  return team_->alone;
}

void SharedWorkers::end_idle() {
  std::vector<std::unique_ptr<Team>> ended;  // without the lock
  Idle& idle = *idle_of_process();
  const std::lock_guard lock(idle.mutex);
  ended.swap(idle.teams);
}

}  // namespace einrel
