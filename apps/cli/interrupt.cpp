#include "interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "output.h"

namespace einrel::cli {
namespace {

/// For the signal handler, which can tell in no other way.
std::atomic<bool>& is_noted() {
  static std::atomic<bool> noted = false;
  return noted;
}

void note(int signal) {
  constexpr std::string_view words = "\ninterrupted: the step under way is finished first; Ctrl-C again ends at once\n";
  is_noted() = true;
  std::signal(signal, SIG_DFL);
  if (::write(STDERR_FILENO, words.data(), words.size()) < 0) return;  // there is nobody to tell
}

}  // namespace

NotedInterrupt::NotedInterrupt() {
  is_noted() = false;
  if (std::signal(SIGINT, note) == SIG_IGN) std::signal(SIGINT, SIG_IGN);  // as whoever started us wants
}

NotedInterrupt::~NotedInterrupt() {
  if (std::signal(SIGINT, SIG_DFL) == SIG_IGN) std::signal(SIGINT, SIG_IGN);
}

bool NotedInterrupt::is_there() const { return is_noted(); }

void NotedInterrupt::end() const {
  constexpr int interrupted = 130;
  flush_output();
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
  std::_Exit(interrupted);
}

}  // namespace einrel::cli
