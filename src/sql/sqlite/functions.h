#pragma once

#include <exception>

#include "sql/functions/functions.h"
#include "sql/sqlite/api.h"

namespace einrel::sql {

/// What the functions of one connection share; it must outlive the connection.
struct ConnectionState : FunctionState {
  std::exception_ptr error;  ///< of the call that failed: SQLite itself keeps its words only
};

/// Registers with a connection what scripts call (sql/functions/functions.h). Throws RunError when SQLite refuses them.
void register_functions(sqlite3* database, ConnectionState& state);

/// The table-valued einrel_elements.
void register_elements(sqlite3* database, ConnectionState& state);

/// Keeps what was thrown first, and tells SQLite its words.
void report(sqlite3_context* context, ConnectionState& state, std::exception_ptr error);

/// What is in it; it lives as long as SQLite's value.
Value value_of(sqlite3_value* value);
/// A number of a tensor's element as SQLite stores it; NaN is NULL there.
void set_element(sqlite3_context* context, const Tensor& array, std::int64_t offset);

}  // namespace einrel::sql
