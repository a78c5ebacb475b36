#pragma once

#include <span>
#include <string_view>

namespace einrel {

/// A file of the folder machines/.
struct MachineText {
  std::string_view name;
  std::string_view text;
};

/// All of them; written by the build, see CMakeLists.txt.
std::span<const MachineText> machine_texts();

}  // namespace einrel
