#include "base/same_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/text.h"

namespace einrel {

void refuse_same_file(const std::vector<std::string>& written, const std::vector<std::string>& read,
                      const char* remedy) {
  for (const std::string& output : written) {
    for (const std::string& input : read) {
      std::error_code absent;  // one that is not there is no other
      if (!std::filesystem::equivalent(output, input, absent)) continue;
      throw UserError(fmt::format("cannot write '{}': it is a file that is read{}; {}", printable(output),
                                  output == input ? "" : fmt::format(", '{}'", printable(input)), remedy));
    }
  }
}

}  // namespace einrel
