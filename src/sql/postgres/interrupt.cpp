#include "sql/postgres/interrupt.h"

#include <array>
#include <atomic>
#include <csignal>

namespace einrel::sql {
namespace {

constexpr std::array<int, 3> signals{SIGINT, SIGTERM, SIGHUP};

/// For the signal handler, which can be told in no other way.
std::atomic<PGcancel*>& cancel_of_process() {
  static std::atomic<PGcancel*> cancel = nullptr;
  return cancel;
}

/// PQcancel may be called in a handler. The process then ends as it would have done without one.
void cancel_and_end(int signal) {
  std::array<char, 256> words{};
  PGcancel* const cancel = cancel_of_process().exchange(nullptr);
  if (cancel != nullptr) PQcancel(cancel, words.data(), static_cast<int>(words.size()));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

bool is_handled_by(int signal, void (*handler)(int)) {
  struct sigaction found {};
  return sigaction(signal, nullptr, &found) == 0 && (found.sa_flags & SA_SIGINFO) == 0 && found.sa_handler == handler;
}

}  // namespace

CancelOnSignal::CancelOnSignal(PGconn* connection) {
  PGcancel* const own = PQgetCancel(connection);
  PGcancel* nobody = nullptr;
  is_alone_ = cancel_of_process().compare_exchange_strong(nobody, own);
  if (!is_alone_) {
    PQfreeCancel(own);
    return;
  }
  for (const int signal : signals) {
    if (!is_handled_by(signal, SIG_DFL)) continue;
    std::signal(signal, cancel_and_end);
    handled_.push_back(signal);
  }
}

CancelOnSignal::~CancelOnSignal() {
  if (!is_alone_) return;
  for (const int signal : handled_) {
    if (is_handled_by(signal, cancel_and_end)) std::signal(signal, SIG_DFL);
  }
  PQfreeCancel(cancel_of_process().exchange(nullptr));
}

}  // namespace einrel::sql
