#include "cut_short_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "base/text.h"
#include "output.h"

namespace einrel::cli {
namespace {

// All of this runs in a signal handler: nothing may allocate, lock or throw.

/// Text of limited length; what is too long for it is cut off.
class Line {
 public:
  void clear() { length_ = 0; }
  void add(std::string_view text) {
    const std::size_t count = std::min(text.size(), characters_.size() - length_);
    std::copy_n(text.begin(), count, characters_.begin() + static_cast<std::ptrdiff_t>(length_));
    length_ += count;
  }
  /// As printable shows it, but of any length.
  void add_printable(std::string_view name) {
    while (!name.empty()) {
      const std::string_view character = name.substr(0, std::max<std::size_t>(utf8_length(name), 1));
      if (is_printable(character)) {
        add(character);
      } else {
        for (const char byte : character) add_escaped(static_cast<unsigned char>(byte));
      }
      name.remove_prefix(character.size());
    }
  }
  std::string_view text() const { return {characters_.data(), length_}; }

 private:
  void add_escaped(unsigned char byte) {
    constexpr std::string_view digits = "0123456789abcdef";
    add("\\x");
    add(digits.substr(byte / 16U, 1));
    add(digits.substr(byte % 16U, 1));
  }

  std::array<char, 4 * 4096 + 512> characters_{};  // the longest path, escaped, and what stands around it
  std::size_t length_ = 0;
};

/// The lines of a file.
class Lines {
 public:
  explicit Lines(const char* path) : file_(open(path, O_RDONLY | O_CLOEXEC)) {}
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  ~Lines() { close(file_); }

  /// False at the end of the file.
  bool next() {
    line_.clear();
    for (;;) {
      if (unread_.empty()) {
        const ssize_t count = ::read(file_, block_.data(), block_.size());
        if (count <= 0) return false;
        unread_ = {block_.data(), static_cast<std::size_t>(count)};
      }
      const std::size_t end = unread_.find('\n');
      line_.add(unread_.substr(0, end));
      unread_.remove_prefix(std::min(end, unread_.size() - 1) + 1);
      if (end != std::string_view::npos) return true;
    }
  }
  std::string_view line() const { return line_.text(); }

 private:
  int file_;
  std::array<char, 4096> block_{};
  std::string_view unread_;  // of the block
  Line line_;
};

/// Takes a number of base 16 from the front of a text, and the character behind it.
std::uintptr_t take_number(std::string_view& text) {
  std::uintptr_t number = 0;
  const char* const end = std::from_chars(text.data(), text.data() + text.size(), number, 16).ptr;
  text.remove_prefix(std::min<std::size_t>(static_cast<std::size_t>(end - text.data()) + 1, text.size()));
  return number;
}

/// Of a line "begin-end permissions offset device inode path", the path if begin <= address < end and it is mapped as
/// inputs are, for reading and not shared; else nothing.
std::string_view input_at(std::string_view line, std::uintptr_t address) {
  const std::uintptr_t begin = take_number(line);
  const std::uintptr_t end = take_number(line);
  const std::size_t path = line.find('/');
  const bool is_input = line.starts_with("r--p") && path != std::string_view::npos;
  return is_input && begin <= address && address < end ? line.substr(path) : std::string_view();
}

void end_with_its_name(int, siginfo_t* information, void*) {
  static std::atomic_flag is_ending;
  while (is_ending.test_and_set()) pause();  // other threads have met the end of the file as well
  const auto address = reinterpret_cast<std::uintptr_t>(information->si_addr);
  std::string_view path;
  Lines mappings("/proc/self/maps");
  while (information->si_code == BUS_ADRERR && path.empty() && mappings.next())
    path = input_at(mappings.line(), address);
  Line message;
  message.add("error: ");
  if (path.empty()) {
    message.add("a file became shorter while it was in use, or there is no room for memory that processes share\n");
  } else {
    message.add("the input file '");
    message.add_printable(path);
    message.add("' became shorter while it was in use\n");
  }
  std::ignore = write(STDERR_FILENO, message.text().data(), message.text().size());
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
