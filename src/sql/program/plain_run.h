#pragma once

#include "sql/program/run.h"

namespace einrel::sql {

/// A program without state in a transaction that is open, element by element in plain SQL. Inputs go through this
/// process, which checks them; few rows of what is sparse stay few. Throws as plain_script and read_elements do.
DatabaseResults run_elements(Database& database, const DatabaseRun& run);

}  // namespace einrel::sql
