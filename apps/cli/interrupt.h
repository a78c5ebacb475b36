#pragma once

#include <exception>

namespace einrel::cli {

/// While it lives, Ctrl-C, SIGTERM, SIGHUP and SIGUSR1 do not end the process but are noted, so that what is under way
/// can be kept; the same one again, after a second, ends it (Ctrl-C at once). One at a time; whoever started the
/// process with one of them ignored has it so.
class NotedInterrupt {
 public:
  /// `says`: what happens, on standard error; one rank of a job does.
  explicit NotedInterrupt(bool says);
  ~NotedInterrupt();
  NotedInterrupt(const NotedInterrupt&) = delete;
  NotedInterrupt& operator=(const NotedInterrupt&) = delete;

  /// The last one that came; 0: none.
  int signal() const;
};

/// What ends a command when all that such a signal left to do is done.
struct Interrupted : std::exception {
  explicit Interrupted(int noted_signal) : signal(noted_signal) {}
  const char* what() const noexcept override { return "interrupted"; }
  int signal;
};

/// Ends the process as the signal would have done, with standard output written: shells see exit code 128 + signal.
/// That code is what a rank of a job ends with, whose guard would take a signal for a fault.
[[noreturn]] void end_interrupted(int signal);

}  // namespace einrel::cli
