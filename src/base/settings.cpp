#include "base/settings.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"

namespace einrel {

std::string settings_path(const std::string& name) {
  const auto set = [](const char* variable) {
    return std::getenv(variable) != nullptr && *std::getenv(variable) != '\0';
  };
  if (set("XDG_CONFIG_HOME")) return fmt::format("{}/einrel/{}", std::getenv("XDG_CONFIG_HOME"), name);
  if (set("HOME")) return fmt::format("{}/.config/einrel/{}", std::getenv("HOME"), name);
  return "";
}

std::string prepare_settings(const std::string& name) {
  std::string path = settings_path(name);
  if (path.empty()) throw UserError("there is no folder for settings: set HOME or XDG_CONFIG_HOME");
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  if (failed) throw UserError(fmt::format("cannot make the folder of '{}': {}", printable(path), failed.message()));
  check_replaceable(path);
  return path;
}

}  // namespace einrel
