#pragma once

#include <string_view>

namespace einrel {

/// What the text of a program is called that was made of expressions: nobody has seen its lines, and names of what is
/// computed on the way may be others in each process.
inline constexpr std::string_view made_of_expressions = "<expressions>";

}  // namespace einrel
