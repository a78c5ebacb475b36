#pragma once

#include <string>

#include "run/choose_formats.h"
#include "run/compile.h"
#include "run/database_run.h"
#include "sql/program/run.h"

namespace einrel {

/// For people: per tensor its format, what computing it and bringing its operands to other formats costs, in its
/// components and in seconds, and the next best format; beside it the cost of tiles alone.
std::string formats_text(const Compiled& compiled, const ChosenFormats& chosen);

/// The same as one JSON object (docs/sql.md).
std::string formats_json(const Compiled& compiled, const ChosenFormats& chosen);

/// "read X f64 (3, 2) from table 'T': a row for each element", a line for each table.
std::string read_text(const std::vector<ReadTable>& read);

/// Both with the database's seconds beside the predicted ones, and what it did besides, of which nothing is predicted.
std::string formats_analysis_text(const Compiled& compiled, const ChosenFormats& chosen,
                                  const sql::DatabaseResults& results);
/// The second says also how tables were read.
std::string formats_analysis_json(const Compiled& compiled, const ChosenFormats& chosen,
                                  const std::vector<ReadTable>& read, const sql::DatabaseResults& results);

}  // namespace einrel
