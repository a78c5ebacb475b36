#include "base/file_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/text.h"

namespace einrel {
namespace {

[[noreturn]] void throw_run_error(const std::string& message, int code) {
  if (code == ENOSPC || code == EDQUOT) throw NoRoom(message);
  throw RunError(message);
}

constexpr std::array mendable{ENOENT, ENOTDIR, EACCES, EPERM, EISDIR, ELOOP, ENAMETOOLONG, EROFS, ENXIO};

}  // namespace

void throw_file_error(std::string_view action, const std::string& path, int code) {
  const std::string message =
      fmt::format("cannot {} '{}': {}", action, printable(path), std::generic_category().message(code));
  if (std::find(mendable.begin(), mendable.end(), code) != mendable.end()) throw UserError(message);
  throw_run_error(message, code);
}

void throw_write_error(const std::string& path, int code) {
  throw_run_error(fmt::format("cannot write '{}': {}", printable(path), std::generic_category().message(code)), code);
}

std::string absolute_path(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path absolute = std::filesystem::absolute(path, failed);
  if (!failed) return absolute.string();
  throw UserError(fmt::format(
      "cannot write '{}': the current folder is not there any more ({}); change to another, or write a path from / on",
      printable(path), failed.message()));
}

}  // namespace einrel
