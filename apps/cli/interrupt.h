#pragma once

namespace einrel::cli {

/// While it lives, Ctrl-C does not end the process but is noted, so that what is under way can be kept; a second one
/// ends it. One at a time; whoever started the process with Ctrl-C ignored has it so.
class NotedInterrupt {
 public:
  NotedInterrupt();
  ~NotedInterrupt();
  NotedInterrupt(const NotedInterrupt&) = delete;
  NotedInterrupt& operator=(const NotedInterrupt&) = delete;

  bool is_there() const;
  /// Ends the process as Ctrl-C would have done, with standard output written: shells see exit code 130.
  [[noreturn]] void end() const;
};

}  // namespace einrel::cli
