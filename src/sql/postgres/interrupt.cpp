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

}  // namespace

CancelOnSignal::CancelOnSignal(PGconn* connection) {
  cancel_of_process() = PQgetCancel(connection);
  for (const int signal : signals) {
    if (std::signal(signal, cancel_and_end) == SIG_IGN) std::signal(signal, SIG_IGN);  // as whoever started us wants
  }
}

CancelOnSignal::~CancelOnSignal() {
  PQfreeCancel(cancel_of_process().exchange(nullptr));
  for (const int signal : signals) {
    if (std::signal(signal, SIG_DFL) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

}  // namespace einrel::sql
