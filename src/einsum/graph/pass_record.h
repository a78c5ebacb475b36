#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace einrel {

/// What a pass did to a program (einrel list passes says which passes there are).
struct PassRecord {
  std::string_view pass;
  std::size_t vertices_before = 0;
  std::size_t vertices_after = 0;
  double seconds = 0;
  std::vector<std::string> changes = {};  ///< for people, a line each
};

}  // namespace einrel
