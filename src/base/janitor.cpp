#include "base/janitor.h"

#include <fcntl.h>
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

namespace einrel {
namespace {

namespace fs = std::filesystem;

/// One command to the other process: to keep a path in mind, or to forget it; the path follows.
struct Command {
  std::uint32_t length = 0;
  std::uint32_t forget = 0;
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

/// What the other process does: until the connection ends, which is when this process has ended.
[[noreturn]] void wait_and_remove(int commands) {
  ::setsid();
  ::prctl(PR_SET_NAME, "einrel-janitor");  // not taken for the one that it watches
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
  std::set<std::string> paths;
  Command command;
  while (read_all(commands, &command, sizeof command)) {
    std::string path(command.length, '\0');
    if (!read_all(commands, path.data(), path.size())) break;
    if (command.forget != 0)
      paths.erase(path);
    else
      paths.insert(path);
  }
  std::error_code ignored;
  for (const std::string& path : paths) fs::remove_all(path, ignored);
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

  void tell(const std::string& path, bool forget) {
    const std::lock_guard lock(mutex_);
    if (commands_ < 0) return;
    const Command command{static_cast<std::uint32_t>(path.size()), forget ? 1U : 0U};
    std::string message(reinterpret_cast<const char*>(&command), sizeof command);
    message += path;
    if (::send(commands_, message.data(), message.size(), MSG_NOSIGNAL) < 0) ::close(std::exchange(commands_, -1));
  }

 private:
  Janitor() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
    // Whoever started us with closed streams: these numbers are theirs.
    for (int& end : ends) end = moved_above_streams(end);
    const pid_t child = ::fork();
    if (child == 0) {
      let_go_of_files(ends[0]);
      wait_and_remove(ends[0]);
    }
    ::close(ends[0]);
    if (child < 0)
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
};

}  // namespace

void remove_at_death(const std::string& path) { Janitor::instance().tell(fs::absolute(path).string(), false); }
void forget_at_death(const std::string& path) { Janitor::instance().tell(fs::absolute(path).string(), true); }

}  // namespace einrel
