#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace einrel {

/// The known name closest to `wrong` in edit distance (insert, delete, replace, swap), or "" when none
/// is close enough to be a likely slip of the pen. O(|known| * |wrong|^2).
std::string nearest_name(std::string_view wrong, const std::vector<std::string>& known);

/// "did you mean 'X'?" or "" when nothing is near.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& known);

}  // namespace einrel
