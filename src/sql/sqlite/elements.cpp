#include <fmt/format.h>

#include <memory>
#include <new>

#include "base/error.h"
#include "sql/functions/array_bytes.h"
#include "sql/sqlite/functions.h"

/// einrel_elements(array): a row for each element of an array, as a table-valued function (an eponymous virtual table
/// with a hidden column, as SQLite calls it).
namespace einrel::sql {
namespace {

constexpr int value_column = 0;
constexpr int array_column = static_cast<int>(most_dimensions) + 1;  // hidden; d0, d1, ... stand between

struct Table {
  sqlite3_vtab base;  // first, as SQLite wants it
  ConnectionState* state;
};

struct Cursor {
  sqlite3_vtab_cursor base;  // first, as SQLite wants it
  ConnectionState* state;
  std::vector<std::byte> bytes;
  Tensor array;
  std::int64_t at;
};

Cursor& cursor_of(sqlite3_vtab_cursor* cursor) { return *reinterpret_cast<Cursor*>(cursor); }

int connect(sqlite3* database, void* state, int, const char* const*, sqlite3_vtab** made, char**) {
  try {
    std::string columns = "CREATE TABLE elements(value";
    for (std::size_t d = 0; d < most_dimensions; ++d) columns += fmt::format(", d{} INTEGER", d);
    const int code = sqlite3_declare_vtab(database, (columns + ", array HIDDEN)").c_str());
    if (code != SQLITE_OK) return code;
    auto table = std::make_unique<Table>();
    table->state = static_cast<ConnectionState*>(state);
    *made = &table.release()->base;
    return SQLITE_OK;
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  }
}

int disconnect(sqlite3_vtab* table) {
  const std::unique_ptr<Table> owner(reinterpret_cast<Table*>(table));
  return SQLITE_OK;
}

/// The array has to be known: without it there is no plan.
int best_index(sqlite3_vtab*, sqlite3_index_info* info) {
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto& constraint = info->aConstraint[i];
    if (constraint.iColumn != array_column || constraint.op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
    if (constraint.usable == 0) return SQLITE_CONSTRAINT;
    info->aConstraintUsage[i].argvIndex = 1;
    info->aConstraintUsage[i].omit = 1;
    info->estimatedCost = 1000;
    return SQLITE_OK;
  }
  return SQLITE_CONSTRAINT;
}

int open(sqlite3_vtab* table, sqlite3_vtab_cursor** made) {
  try {
    auto cursor = std::make_unique<Cursor>();
    cursor->state = reinterpret_cast<Table*>(table)->state;
    cursor->at = 0;
    *made = &cursor.release()->base;
    return SQLITE_OK;
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  }
}

int close(sqlite3_vtab_cursor* cursor) {
  const std::unique_ptr<Cursor> owner(&cursor_of(cursor));
  return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor* at, int, const char*, int, sqlite3_value** values) {
  Cursor& cursor = cursor_of(at);
  try {
    const Tensor array = array_of(value_of(values[0]), "einrel_elements");
    if (array.rank() > most_dimensions)
      throw UserError(fmt::format("an array of {} dimensions has more than the {} that a table of elements takes",
                                  array.rank(), most_dimensions));
    cursor.bytes = array_bytes(array);
    cursor.array = array_in(cursor.bytes);
    cursor.at = 0;
    return SQLITE_OK;
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  } catch (const std::exception& what) {
    cursor.state->error = std::current_exception();
    at->pVtab->zErrMsg = sqlite3_mprintf("%s", what.what());
    return SQLITE_ERROR;
  }
}

int next(sqlite3_vtab_cursor* cursor) {
  ++cursor_of(cursor).at;
  return SQLITE_OK;
}

int is_at_end(sqlite3_vtab_cursor* at) {
  const Cursor& cursor = cursor_of(at);
  return cursor.at >= cursor.array.count() ? 1 : 0;
}

int column(sqlite3_vtab_cursor* at, sqlite3_context* context, int number) {
  const Cursor& cursor = cursor_of(at);
  if (number == value_column) {
    set_element(context, cursor.array, cursor.at);
  } else if (number == array_column) {
    sqlite3_result_blob64(context, cursor.bytes.data(), cursor.bytes.size(), SQLITE_TRANSIENT);
  } else if (static_cast<std::size_t>(number) <= cursor.array.rank()) {
    const auto d = static_cast<std::size_t>(number) - 1;
    const std::int64_t inner = cursor.array.strides()[d];
    sqlite3_result_int64(context, cursor.at / inner % cursor.array.shape()[d].value());
  }
  return SQLITE_OK;
}

int row_number(sqlite3_vtab_cursor* cursor, sqlite3_int64* number) {
  *number = cursor_of(cursor).at;
  return SQLITE_OK;
}

sqlite3_module elements_module() {
  sqlite3_module functions{};
  functions.xConnect = connect;
  functions.xDisconnect = disconnect;
  functions.xBestIndex = best_index;
  functions.xOpen = open;
  functions.xClose = close;
  functions.xFilter = filter;
  functions.xNext = next;
  functions.xEof = is_at_end;
  functions.xColumn = column;
  functions.xRowid = row_number;
  return functions;
}

const sqlite3_module elements = elements_module();

}  // namespace

void register_elements(sqlite3* database, ConnectionState& state) {
  const int code = sqlite3_create_module_v2(database, "einrel_elements", &elements, &state, nullptr);
  if (code != SQLITE_OK) throw RunError(fmt::format("SQLite takes no functions: {}", sqlite3_errstr(code)));
}

}  // namespace einrel::sql
