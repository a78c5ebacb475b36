#pragma once

#include <string>

#include "engine/choose_formats.h"
#include "engine/compile.h"
#include "sql/run.h"

namespace einrel {

/// For people: per tensor its format, what computing it and bringing its operands to other formats costs, in its
/// components and in seconds, and the next best format; beside it the cost of tiles alone.
std::string formats_text(const Compiled& compiled, const ChosenFormats& chosen);

/// The same as one JSON object (docs/sql.md).
std::string formats_json(const Compiled& compiled, const ChosenFormats& chosen);

/// Both with the database's seconds beside the predicted ones, and what it did besides, of which nothing is predicted.
std::string formats_analysis_text(const Compiled& compiled, const ChosenFormats& chosen,
                                  const sql::DatabaseResults& results);
std::string formats_analysis_json(const Compiled& compiled, const ChosenFormats& chosen,
                                  const sql::DatabaseResults& results);

}  // namespace einrel
