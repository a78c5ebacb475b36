#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sql/run.h"

namespace einrel::sql {

/// A program in chunks, by the functions of Einrel, in a transaction that is open: once, or, with state, step by step.
/// `places` are the tables that outputs become, quoted. Throws as `run` does.
DatabaseResults run_steps(Database& database, const DatabaseRun& run,
                          const std::vector<std::pair<std::string, std::string>>& places);

}  // namespace einrel::sql
