#include "output.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace einrel::cli {
namespace {

[[noreturn]] void lost_output() {
  throw RunError(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

}  // namespace

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) lost_output();
}

void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) lost_output();
}

void print_error(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace einrel::cli
