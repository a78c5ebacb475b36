#include "cut_short_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "output.h"

namespace einrel::cli {
namespace {

// All of this runs in a signal handler: nothing may allocate, lock or throw.

/// The lines of a file, of which only the first part is kept of those that are very long.
class Lines {
 public:
  explicit Lines(const char* path) : file_(open(path, O_RDONLY | O_CLOEXEC)) {}
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  ~Lines() { close(file_); }

  /// False at the end of the file.
  bool next() {
    length_ = 0;
    char character = 0;
    while (read(file_, &character, 1) == 1) {
      if (character == '\n') return true;
      if (length_ < line_.size()) line_[length_++] = character;
    }
    return false;
  }
  std::string_view line() const { return {line_.data(), length_}; }

 private:
  int file_;
  std::array<char, 4352> line_{};  // the longest path, and what stands before it
  std::size_t length_ = 0;
};

/// Takes a number of base 16 from the front of a text, and the character behind it.
std::uintptr_t take_number(std::string_view& text) {
  std::uintptr_t number = 0;
  const char* const end = std::from_chars(text.data(), text.data() + text.size(), number, 16).ptr;
  text.remove_prefix(std::min<std::size_t>(static_cast<std::size_t>(end - text.data()) + 1, text.size()));
  return number;
}

/// Of a line "begin-end permissions offset device inode path", the path if begin <= address < end; else nothing.
std::string_view path_of(std::string_view line, std::uintptr_t address) {
  const std::uintptr_t begin = take_number(line);
  const std::uintptr_t end = take_number(line);
  const std::size_t path = line.find('/');
  return begin <= address && address < end && path != std::string_view::npos ? line.substr(path) : std::string_view();
}

void say(std::string_view text) { std::ignore = write(STDERR_FILENO, text.data(), text.size()); }

void end_with_its_name(int, siginfo_t* information, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(information->si_addr);
  std::string_view path;
  Lines mappings("/proc/self/maps");
  while (path.empty() && mappings.next()) path = path_of(mappings.line(), address);
  if (path.empty()) {
    say("error: an input file became shorter while it was in use\n");
  } else {
    say("error: the input file '");
    say(path);
    say("' became shorter while it was in use\n");
  }
  _exit(exit_run_error);
}

}  // namespace

void name_inputs_that_are_cut_short() {
  struct sigaction action {};
  action.sa_sigaction = end_with_its_name;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace einrel::cli
