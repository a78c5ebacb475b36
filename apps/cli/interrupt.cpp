#include "interrupt.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "exec/job/job.h"
#include "output.h"

namespace einrel::cli {
namespace {

/// Ctrl-C, and what systems send to a job that they are about to end.
constexpr std::array noted_signals{SIGINT, SIGTERM, SIGHUP, SIGUSR1};

/// For the signal handler, which can tell, and be told, in no other way.
struct Noted {
  std::atomic<int> signal = 0;
  std::atomic<std::int64_t> since = 0;  ///< milliseconds, when it came
  std::atomic<bool> says = true;
  std::atomic<bool> is_rank = false;
};
Noted& noted() {
  static Noted the_noted;
  return the_noted;
}

std::int64_t milliseconds_now() {
  struct timespec now {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{1000} * now.tv_sec + now.tv_nsec / 1'000'000;
}

/// What launchers send comes twice: to all processes of a rank, and by way of its guard.
bool is_repeated(int signal) {
  constexpr std::int64_t at_once = 1000;
  const bool may_be = signal != SIGINT || noted().is_rank;
  return may_be && noted().signal == signal && milliseconds_now() - noted().since <= at_once;
}

void note(int signal) {
  constexpr std::string_view by_keys =
      "\ninterrupted: the step under way is finished first; Ctrl-C again ends at once\n";
  constexpr std::string_view by_others =
      "\ninterrupted: the step under way is finished first; the same signal again ends at once\n";
  if (is_repeated(signal)) return;
  if (noted().signal == signal) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  noted().since = milliseconds_now();
  noted().signal = signal;
  const std::string_view words = signal == SIGINT ? by_keys : by_others;
  if (noted().says && ::write(STDERR_FILENO, words.data(), words.size()) < 0) return;  // there is nobody to tell
}

}  // namespace

NotedInterrupt::NotedInterrupt(bool says) {
  noted().signal = 0;
  noted().says = says;
  noted().is_rank = name_in_job().has_value();
  for (const int signal : noted_signals) {
    if (std::signal(signal, note) == SIG_IGN) std::signal(signal, SIG_IGN);  // as whoever started us wants
  }
}

NotedInterrupt::~NotedInterrupt() {
  for (const int signal : noted_signals) {
    if (std::signal(signal, SIG_DFL) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

int NotedInterrupt::signal() const { return noted().signal; }

void end_interrupted(int signal) {
  constexpr int by_signal = 128;  // as shells say it
  flush_output();
  if (!name_in_job()) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  std::_Exit(by_signal + signal);
}

}  // namespace einrel::cli
