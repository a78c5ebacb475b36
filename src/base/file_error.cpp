#include "base/file_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "base/error.h"

namespace einrel {
namespace {

constexpr std::array mendable{ENOENT, ENOTDIR, EACCES, EPERM, EISDIR, ELOOP, ENAMETOOLONG, EROFS, ENXIO};

}  // namespace

void throw_file_error(std::string_view action, const std::string& path, int code) {
  const std::string message = fmt::format("cannot {} '{}': {}", action, path, std::generic_category().message(code));
  if (std::find(mendable.begin(), mendable.end(), code) != mendable.end()) throw UserError(message);
  throw RunError(message);
}

void throw_write_error(const std::string& path, int code) {
  throw RunError(fmt::format("cannot write '{}': {}", path, std::generic_category().message(code)));
}

}  // namespace einrel
