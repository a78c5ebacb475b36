#include <chrono>
#include <exception>
#include <memory>

#include "base/error.h"
#include "sql/sqlite/functions.h"

SQLITE_EXTENSION_INIT1

namespace einrel::sql {
namespace {

void say_version(sqlite3_context* context, int /*count*/, sqlite3_value** /*arguments*/) {
  sqlite3_result_text(context, EINREL_VERSION, -1, SQLITE_STATIC);
}

void end(void* state) { const std::unique_ptr<ConnectionState> ends(static_cast<ConnectionState*>(state)); }

/// Whether whoever uses the connection wants an end of what runs: sqlite3_interrupt, or a progress handler. SQLite says
/// so to no function before version 3.41, but it ends statements, this small one as well; it takes a tenth of a
/// millisecond, in which it asks a progress handler, too. For one thread: that of the connection.
class StopLook {
 public:
  explicit StopLook(sqlite3* database) : database_(database) {}

  bool operator()() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < between_looks) return false;
    last_ = now;
    const int code = sqlite3_exec(database_,
                                  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 500) "
                                  "SELECT count(*) FROM n",
                                  nullptr, nullptr, nullptr);
    return code == SQLITE_INTERRUPT;
  }

 private:
  static constexpr std::chrono::milliseconds between_looks{10};
  sqlite3* database_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// A code of SQLite.
int register_all(sqlite3* database) {
  auto made = std::make_unique<ConnectionState>();
  ConnectionState& state = *made;
  invariant(state.workers.threads() == 1, "a connection is asked by the thread that uses it");
  state.workers.cancel_when(StopLook(database));
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
