#include "base/janitor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>

#include "base/file_error.h"

namespace einrel {
namespace {

namespace fs = std::filesystem;

enum class Order : std::uint32_t { remember, forget, keep_awake };

/// One command to the other process: what it should do with the path, or the number of a process, that follows.
struct Command {
  std::uint32_t length = 0;
  Order order = Order::remember;
};

bool read_all(int from, void* to, std::size_t count) {
  auto* at = static_cast<char*>(to);
  while (count > 0) {
    const ssize_t got = ::read(from, at, count);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    count -= static_cast<std::size_t>(got);
  }
  return true;
}

/// Returns when there is something to read, or the connection has ended.
void wait_for_command(int commands, pid_t to_wake) {
  constexpr int interval = 1000;
  pollfd waited{commands, POLLIN, 0};
  while (::poll(&waited, 1, to_wake > 0 ? interval : -1) <= 0) {
    if (to_wake > 0) ::kill(to_wake, SIGCONT);
  }
}

/// What the other process does: until the connection ends, which is when this process has ended.
[[noreturn]] void wait_and_remove(int commands) {
  ::setsid();
  ::prctl(PR_SET_NAME, "einrel-janitor");  // not taken for the one that it watches
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
  std::set<std::string> paths;
  pid_t to_wake = 0;
  Command command;
  for (;;) {
    wait_for_command(commands, to_wake);
    if (!read_all(commands, &command, sizeof command)) break;
    std::string path(command.length, '\0');
    if (!read_all(commands, path.data(), path.size())) break;
    if (command.order == Order::remember) paths.insert(path);
    if (command.order == Order::forget) paths.erase(path);
    if (command.order == Order::keep_awake) to_wake = std::stoi(path);
  }
  std::error_code ignored;
  for (const std::string& path : paths) fs::remove_all(path, ignored);
  if (to_wake > 0) ::kill(to_wake, SIGCONT);
  ::_exit(0);
}

/// Holds nothing of its parent's: whoever reads what that one prints must see its end.
void let_go_of_files(int but) {
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, standard);
  ::close_range(3, static_cast<unsigned>(but) - 1, 0);
  ::close_range(static_cast<unsigned>(but) + 1, ~0U, 0);
}

class Janitor {
 public:
  static Janitor& instance() {
    static Janitor the_janitor;
    return the_janitor;
  }

  void tell(Order order, const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (commands_ < 0) return;
    const Command command{static_cast<std::uint32_t>(text.size()), order};
    std::string message(reinterpret_cast<const char*>(&command), sizeof command);
    message += text;
    wake();
    if (::send(commands_, message.data(), message.size(), MSG_NOSIGNAL) < 0) ::close(std::exchange(commands_, -1));
  }

 private:
  /// One that is stopped would not read, and would be there for ever.
  void wake() const { ::kill(child_, SIGCONT); }
  ~Janitor() {
    if (commands_ >= 0) wake();
  }
  Janitor() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
    // Whoever started us with closed streams: these numbers are theirs.
    for (int& end : ends) end = moved_above_streams(end);
    child_ = ::fork();
    if (child_ == 0) {
      let_go_of_files(ends[0]);
      wait_and_remove(ends[0]);
    }
    ::close(ends[0]);
    if (child_ < 0)
      ::close(ends[1]);
    else
      commands_ = ends[1];
  }

  static int moved_above_streams(int file) {
    if (file > STDERR_FILENO) return file;
    const int moved = ::fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    ::close(file);
    return moved;
  }

  std::mutex mutex_;
  int commands_ = -1;
  pid_t child_ = -1;
};

}  // namespace

void prepare_to_remove() { Janitor::instance(); }
void remove_at_death(const std::string& path) { Janitor::instance().tell(Order::remember, absolute_path(path)); }
void forget_at_death(const std::string& path) {
  std::error_code removed;  // the current folder, meanwhile, and the file with it
  const fs::path absolute = fs::absolute(path, removed);
  if (!removed) Janitor::instance().tell(Order::forget, absolute.string());
}
void keep_awake(pid_t process) { Janitor::instance().tell(Order::keep_awake, std::to_string(process)); }

}  // namespace einrel
