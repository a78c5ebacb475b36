#pragma once

#include <string>
#include <vector>

namespace einrel::sql {

/// Whose SQL it is.
enum class Dialect { sqlite, postgres, duckdb };

/// "sqlite", "postgres", "duckdb". Throws UserError for any other name.
Dialect dialect_named(const std::string& name);

}  // namespace einrel::sql
