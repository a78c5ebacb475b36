#pragma once

#include <string_view>
#include <vector>

namespace einrel {

/// A file of the folder machines/.
struct MachineText {
  std::string_view name;
  std::string_view text;
};

/// All of them; written by the build, see CMakeLists.txt.
const std::vector<MachineText>& machine_texts();

}  // namespace einrel
