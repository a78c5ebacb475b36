#include "base/same_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/text.h"

namespace einrel {
namespace {

namespace fs = std::filesystem;

/// Where a path leads, whether or not anything is there: links are followed, also one that leads to nothing yet.
fs::path place_of(const std::string& path) {
  constexpr int most_links = 40;  // as many as Linux follows
  std::error_code unknown;        // what cannot be found is as it is written
  fs::path place = fs::absolute(path, unknown);
  for (int links = 0; links < most_links && fs::is_symlink(fs::symlink_status(place, unknown)); ++links) {
    const fs::path target = fs::read_symlink(place, unknown);
    if (unknown) break;
    place = place.parent_path() / target;  // the target alone where it is absolute
  }
  const fs::path found = fs::weakly_canonical(place, unknown);
  return unknown ? place : found;
}

}  // namespace

bool is_same_file(const std::string& first, const std::string& second) {
  std::error_code absent;  // names of one that is there may be hard links
  return fs::equivalent(first, second, absent) || place_of(first) == place_of(second);
}

void refuse_same_file(const std::vector<std::string>& written, const std::vector<std::string>& read,
                      const char* remedy) {
  for (const std::string& output : written) {
    for (const std::string& input : read) {
      if (!is_same_file(output, input)) continue;
      throw UserError(fmt::format("cannot write '{}': it is a file that is read{}; {}", printable(output),
                                  output == input ? "" : fmt::format(", '{}'", printable(input)), remedy));
    }
  }
}

}  // namespace einrel
