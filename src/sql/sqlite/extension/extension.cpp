#include <exception>
#include <memory>

#include "sql/sqlite/functions.h"

SQLITE_EXTENSION_INIT1

namespace einrel::sql {
namespace {

void say_version(sqlite3_context* context, int /*count*/, sqlite3_value** /*arguments*/) {
  sqlite3_result_text(context, EINREL_VERSION, -1, SQLITE_STATIC);
}

void end(void* state) { const std::unique_ptr<ConnectionState> ends(static_cast<ConnectionState*>(state)); }

/// A code of SQLite.
int register_all(sqlite3* database) {
  auto made = std::make_unique<ConnectionState>();
  ConnectionState& state = *made;
  // The state goes with this function, which goes with the connection; SQLite ends it also where it refuses.
  const int code = sqlite3_create_function_v2(database, "einrel_version", 0, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                              made.release(), say_version, nullptr, nullptr, end);
  if (code != SQLITE_OK) return code;
  register_functions(database, state);
  return SQLITE_OK;
}

}  // namespace
}  // namespace einrel::sql

/// What SQLite calls when it loads einrel_sqlite.so: its name is the file's, without what is no letter.
extern "C" __attribute__((visibility("default"))) int sqlite3_einrelsqlite_init(sqlite3* database, char** error,
                                                                                const sqlite3_api_routines* routines);

int sqlite3_einrelsqlite_init(sqlite3* database, char** error, const sqlite3_api_routines* routines) {
  SQLITE_EXTENSION_INIT2(routines)
  try {
    return einrel::sql::register_all(database);
  } catch (const std::exception& failure) {
    *error = sqlite3_mprintf("%s", failure.what());
    return SQLITE_ERROR;
  }
}
