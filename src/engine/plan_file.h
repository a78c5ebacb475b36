#pragma once

#include <string>

#include "engine/compile.h"
#include "plan/plan.h"

namespace einrel {

/// Reads the plan of a program that `explain --json` wrote (the first, if it holds several): the same plan, wherever it
/// came from. Throws UserError naming file, vertex and label where it is no such file or does not fit the program.
Plan read_plan(const std::string& path, const Compiled& compiled);

}  // namespace einrel
