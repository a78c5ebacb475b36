#pragma once

#include <string>

#include "einsum/front/build/program.h"

namespace einrel {

/// The text of a program, a line for each statement, which parse() reads as the same program, where unnamed tensors
/// have names. Says in each span where its part stands in the text, so that messages about a program that was never
/// text can show it. O(size).
std::string print(build::Program& program);

}  // namespace einrel
