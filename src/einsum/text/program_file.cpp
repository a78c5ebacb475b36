#include "einsum/text/program_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/file_error.h"
#include "base/text.h"

namespace einrel {
namespace {

/// That is closed on every way out.
class OpenProgram {
 public:
  // O_NONBLOCK: opening a pipe would wait for somebody who opens its other end.
  explicit OpenProgram(const std::string& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0) throw UserError(fmt::format("cannot open {}: {}", printable(path), std::strerror(errno)));
  }
  OpenProgram(const OpenProgram&) = delete;
  OpenProgram& operator=(const OpenProgram&) = delete;
  ~OpenProgram() { ::close(descriptor_); }

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

constexpr int patience = 10'000;  // milliseconds
constexpr int for_ever = -1;

/// Of a pipe: until there is something in it, or nobody is left who writes.
void wait_for_writer(int descriptor, const std::string& name, int milliseconds) {
  pollfd waited{descriptor, POLLIN, 0};
  int found = 0;
  do found = ::poll(&waited, 1, milliseconds);
  while (found < 0 && errno == EINTR);
  if (found != 0) return;
  throw UserError(
      fmt::format("{} is a pipe into which nobody has written for 10 s; save the program to a file, or give it on "
                  "standard input, as -",
                  printable(name)));
}

std::string read_all(int descriptor, const std::string& name, int milliseconds) {
  std::string text;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      wait_for_writer(descriptor, name, milliseconds);
      continue;
    }
    if (got < 0) throw_file_error("read", name, errno);
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > most_program_bytes)
      throw UserError(fmt::format("{} is larger than any program: more than 4 MiB", printable(name)));
  }
}

}  // namespace

std::string read_standard_input() { return read_all(STDIN_FILENO, "standard input", for_ever); }

std::string read_program_file(const std::string& path) {
  const OpenProgram file(path);
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) throw_file_error("read", path, errno);
  if (S_ISDIR(status.st_mode)) throw UserError(fmt::format("{} is a folder, not a program", printable(path)));
  if (S_ISFIFO(status.st_mode)) wait_for_writer(file.descriptor(), path, patience);
  return read_all(file.descriptor(), path, patience);
}

}  // namespace einrel
