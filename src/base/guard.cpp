#include "base/guard.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <thread>
#include <tuple>

#include "base/janitor.h"

namespace einrel {
namespace {

constexpr int exit_run_failed = 2;

/// For the signal handler, which can be told in no other way.
struct Guarded {
  std::atomic<pid_t> pid = 0;
  std::atomic<bool> was_asked_to_end = false;
};
Guarded& guarded() {
  static Guarded the_guarded;
  return the_guarded;
}

void pass_on(int signal) {
  const int before = errno;
  guarded().was_asked_to_end = true;
  ::kill(guarded().pid, signal);
  errno = before;
}

[[noreturn]] void fail(const std::string& message) {
  const std::string line = "error: " + message + "\n";
  std::ignore = ::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(exit_run_failed);
}

/// What became of the process when it is gone.
[[noreturn]] void end_as(int status, const std::string& name, pid_t pid) {
  if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  if (guarded().was_asked_to_end) ::_exit(128 + signal);  // whoever started the job knows why
  fail(fmt::format("{} (process {}) was killed by signal {} ({})", name, pid, signal, ::strsignal(signal)));
}

[[noreturn]] void watch(pid_t pid, const std::string& name, double timeout) {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> stopped;
  for (;;) {
    int status = 0;
    const pid_t changed = ::waitpid(pid, &status, WUNTRACED | WCONTINUED | (stopped ? WNOHANG : 0));
    if (changed < 0 && errno != EINTR) ::_exit(exit_run_failed);
    if (changed == pid) {
      if (WIFEXITED(status) || WIFSIGNALED(status)) end_as(status, name, pid);
      if (WIFSTOPPED(status)) stopped = Clock::now();
      if (WIFCONTINUED(status)) stopped.reset();
    }
    if (!stopped) continue;
    if (Clock::now() - *stopped > std::chrono::duration<double>(timeout)) {
      ::kill(pid, SIGKILL);
      fail(fmt::format("{} (process {}) made no progress for {:.0f} s: it is stopped by a signal", name, pid, timeout));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace

void run_guarded(const std::string& name, double timeout) {
  const pid_t guard = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return;  // without a guard, then
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != guard) ::_exit(exit_run_failed);  // it has died already
    keep_awake(guard);  // one that is stopped would not see the end, and whoever waits for it neither
    return;
  }
  ::prctl(PR_SET_NAME, "einrel-guard");
  ::setpgid(0, 0);  // what stops the group of the rank must not stop its guard
  guarded().pid = pid;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) std::signal(signal, pass_on);
  watch(pid, name, timeout);
}

}  // namespace einrel
