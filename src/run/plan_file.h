#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plan/plan.h"
#include "run/compile.h"

namespace einrel {

/// The version of what `explain --json` and `run --json` print (docs/explain-json.md). A member that goes, or changes
/// its meaning, makes it another one; members are added within a version.
inline constexpr std::int64_t report_version = 1;

/// The plan of a program that `explain --json` wrote (the first, if it holds several): the same plan, wherever it came
/// from. `source` is what messages call the text. Throws UserError naming source, vertex and label where it is no such
/// text or does not fit the program. Names of vertices have to be the program's, unless it was made of expressions.
Plan parse_plan(std::string_view text, const std::string& source, const Compiled& compiled);

/// Of a file. Throws as parse_plan does, and UserError when it cannot be read.
Plan read_plan(const std::string& path, const Compiled& compiled);

}  // namespace einrel
