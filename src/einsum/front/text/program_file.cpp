#include "einsum/front/text/program_file.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "base/error.h"
#include "base/file_error.h"
#include "base/open_file.h"
#include "base/text.h"

namespace einrel {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a program may take to come through a pipe, and until when.
struct Patience {
  std::chrono::milliseconds in_all;
  Clock::time_point end = Clock::now() + in_all;
};

/// For poll: none left is 0, and no end is -1.
int milliseconds_left(const std::optional<Patience>& patience) {
  if (!patience) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(patience->end - Clock::now());
  return static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

/// Of a pipe: until there is something in it, or nobody is left who writes.
void wait_for_writer(int descriptor, const std::string& name, const std::optional<Patience>& patience) {
  pollfd waited{descriptor, POLLIN, 0};
  int found = 0;
  do found = ::poll(&waited, 1, milliseconds_left(patience));
  while (found < 0 && errno == EINTR);
  if (found != 0) return;
  throw UserError(
      fmt::format("{} is a pipe through which no whole program has come in {} s; save the program to a file, or give "
                  "it on standard input, as -",
                  printable(name), std::chrono::duration<double>(patience->in_all).count()));
}

std::string read_all(int descriptor, const std::string& name, const std::optional<Patience>& patience) {
  std::string text;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      wait_for_writer(descriptor, name, patience);
      continue;
    }
    if (got < 0) throw_file_error("read", name, errno);
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > most_program_bytes)
      throw UserError(fmt::format("{} is larger than any program: more than 4 MiB", printable(name)));
  }
}

}  // namespace

std::string read_standard_input() { return read_all(STDIN_FILENO, "standard input", std::nullopt); }

std::string read_program_file(const std::string& path, std::chrono::milliseconds patience) {
  const OpenFile file(path);
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) throw_file_error("read", path, errno);
  if (S_ISDIR(status.st_mode)) throw UserError(fmt::format("{} is a folder, not a program", printable(path)));
  const Patience wait{patience};
  if (S_ISFIFO(status.st_mode)) wait_for_writer(file.descriptor(), path, wait);  // else one without writers is empty
  return read_all(file.descriptor(), path, wait);
}

}  // namespace einrel
