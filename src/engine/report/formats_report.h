#pragma once

#include <string>

#include "engine/choose_formats.h"
#include "engine/compile.h"

namespace einrel {

/// For people: per tensor its format, what computing it and bringing its operands to other formats costs, in the four
/// components and in seconds, and the next best format; beside it the cost of tiles alone.
std::string formats_text(const Compiled& compiled, const ChosenFormats& chosen);

/// The same as one JSON object (docs/sql.md).
std::string formats_json(const Compiled& compiled, const ChosenFormats& chosen);

}  // namespace einrel
