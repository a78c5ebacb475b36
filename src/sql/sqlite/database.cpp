#include "sql/sqlite/database.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "sql/functions/array_bytes.h"
#include "sql/program/elements.h"
#include "sql/program/names.h"
#include "sql/program/script.h"

namespace einrel::sql {
namespace {

/// Another program's lock is looked at so often.
constexpr int milliseconds_between_looks = 10;
constexpr int most_looks_at_lock = 500;
/// After so many operations of a statement SQLite looks whether it is to end: far below a millisecond.
constexpr int operations_between_looks = 1000;

/// Chunks are many pages long, which are read and written one by one: of temporary tables, those are the largest there
/// are. The first 64 MB stay in memory.
constexpr std::array settings{"PRAGMA temp.page_size = 65536", "PRAGMA temp.cache_size = -65536"};

/// Whether to look again at a lock that there still was so many times.
int waits_for_lock(void* stop, int looks) {
  if (static_cast<std::stop_source*>(stop)->stop_requested() || looks >= most_looks_at_lock) return 0;
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds_between_looks));
  return 1;
}

/// Whether nothing but blanks and semicolons follows.
bool is_blank(std::string_view rest) { return rest.find_first_not_of(" \t\r\n;") == std::string_view::npos; }

bool is_writable_folder(const char* path) {
  std::error_code unknown;
  return path != nullptr && std::filesystem::is_directory(path, unknown) && ::access(path, W_OK | X_OK) == 0;
}

/// Of a disk, of a user on it, or of a file.
bool is_out_of_room(int system_error) {
  return system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG;
}

}  // namespace

SqliteDatabase::SqliteDatabase(const std::string& path, MissingFile missing)
    : path_(path),
      title_(fmt::format("the database '{}'", printable(path))),
      state_(std::make_unique<ConnectionState>()) {
  std::error_code unknown;
  const bool is_new =
      missing == MissingFile::made && !std::filesystem::exists(path, unknown) && unknown == std::error_code();
  if (is_new) new_file_.emplace(path);
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(is_new ? new_file_->temporary().c_str() : path.c_str(), &opened,
                                   SQLITE_OPEN_READWRITE | (is_new ? SQLITE_OPEN_CREATE : 0), nullptr);
  database_.reset(opened);
  if (code == SQLITE_CANTOPEN) {
    const int why = sqlite3_system_errno(opened);
    throw UserError(fmt::format("cannot open {}: {}{}", title_, std::generic_category().message(why),
                                why == ENOENT ? "; a run that reads no table of it makes one" : ""));
  }
  if (code != SQLITE_OK) fail(code, Author::einrel);
  sqlite3_extended_result_codes(opened, 1);
  sqlite3_busy_handler(opened, waits_for_lock, &stop_);
  register_functions(opened, *state_);
  state_->workers.cancel_on(stop_.get_token());
  sqlite3_progress_handler(
      opened, operations_between_looks,
      [](void* stop) { return static_cast<std::stop_source*>(stop)->stop_requested() ? 1 : 0; }, &stop_);
  for (const char* setting : settings) execute(setting);
}

SqliteDatabase::~SqliteDatabase() = default;

void SqliteDatabase::commit() {
  execute("COMMIT");
  if (new_file_) new_file_->keep();
}

/// Temporary files go where SQLite itself looks for a folder, in this order.
DatabaseFolders SqliteDatabase::folders() {
  DatabaseFolders found;
  const std::string own = std::filesystem::path(path_).parent_path().string();
  found.tables = own.empty() ? "." : own;
  const std::array<const char*, 6> folders{
      std::getenv("SQLITE_TMPDIR"), std::getenv("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp", "."};
  const auto* const first = std::find_if(folders.begin(), folders.end(), is_writable_folder);
  if (first != folders.end()) found.temporary = *first;
  return found;
}

void SqliteDatabase::fail(int code, Author author) {
  const std::exception_ptr error = std::exchange(state_->error, nullptr);
  if (stop_.stop_requested()) throw stopped();  // whatever the functions say that it interrupts
  if (error) std::rethrow_exception(error);
  const std::string words = database_ ? printable(sqlite3_errmsg(database_.get())) : sqlite3_errstr(code);
  switch (code & 0xFF) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT: throw UserError(fmt::format("{} cannot be read: {}", title_, words));
    case SQLITE_READONLY:
    case SQLITE_PERM: throw UserError(fmt::format("{} cannot be written: {}", title_, words));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw RunError(
          fmt::format("{} is locked by another program; it is as it was. Try again when that is done", title_));
    case SQLITE_FULL: fail_without_room(words);
    case SQLITE_IOERR:
      if (const int why = sqlite3_system_errno(database_.get()); is_out_of_room(why))
        fail_without_room(std::generic_category().message(why));
      break;
    case SQLITE_NOMEM: throw RunError(fmt::format("SQLite finds no memory for {}", title_));
    case SQLITE_TOOBIG:
      throw UserError(fmt::format("{}: a value would have more than 1 GB; choose smaller chunks", title_));
    default: break;
  }
  if (author == Author::user) throw UserError(fmt::format("{} does not take the query: {}", title_, words));
  // What a view or query of the user computes, and names that SQLite keeps for itself.
  const bool is_wrong = (code & 0xFF) == SQLITE_ERROR || (code & 0xFF) == SQLITE_AUTH;
  if (is_wrong) throw UserError(fmt::format("{}: {}", title_, words));
  throw RunError(fmt::format("{}: {}", title_, words));
}

void SqliteDatabase::fail_without_room(const std::string& words) const {
  throw RunError(
      fmt::format("{} or its temporary files find no room on the disk: {}; the database is as it was", title_, words));
}

SqliteDatabase::Prepared SqliteDatabase::prepare(const std::string& text, Author author) {
  state_->error = nullptr;
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  const int code = sqlite3_prepare_v2(database_.get(), text.data(), static_cast<int>(text.size()), &statement, &rest);
  Prepared prepared(statement);
  if (code != SQLITE_OK) fail(code, author);
  const std::string_view left(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  if (author == Author::user && (statement == nullptr || !is_blank(left)))
    throw UserError(fmt::format("{} takes one query, not '{}'", title_, printable(text)));
  return prepared;
}

bool SqliteDatabase::step(sqlite3_stmt* statement) {
  const int code = sqlite3_step(statement);
  if (code != SQLITE_ROW && code != SQLITE_DONE) fail(code, Author::einrel);
  return code == SQLITE_ROW;
}

void SqliteDatabase::execute(const std::string& statement) {
  const Prepared prepared = prepare(statement, Author::einrel);
  while (step(prepared.get())) {
  }
}

std::vector<std::int64_t> SqliteDatabase::first_row(const std::string& query) {
  const Prepared prepared = prepare(query, Author::einrel);
  std::vector<std::int64_t> row;
  if (!step(prepared.get())) return row;
  for (int c = 0; c < sqlite3_column_count(prepared.get()); ++c) row.push_back(sqlite3_column_int64(prepared.get(), c));
  return row;
}

std::vector<Column> SqliteDatabase::columns_of(const std::string& query, Author author) {
  const Prepared prepared = prepare(query, author);
  const int count = sqlite3_column_count(prepared.get());
  if (sqlite3_stmt_readonly(prepared.get()) == 0 || count == 0)
    throw UserError(fmt::format("{} takes a query that only reads, not '{}'", title_, printable(query)));
  if (sqlite3_bind_parameter_count(prepared.get()) != 0)
    throw UserError(fmt::format("the query '{}' has parameters, for which there are no values", printable(query)));
  std::vector<Column> columns;
  for (int c = 0; c < count; ++c) {
    const char* const name = sqlite3_column_name(prepared.get(), c);
    columns.push_back({name == nullptr ? "" : name});
  }
  return columns;
}

/// Columns without a type take values as they are.
KeptRows SqliteDatabase::keep_rows(const std::string& table, const std::string& source, std::size_t columns,
                                   std::optional<std::int64_t> most) {
  const auto pages = [&] {
    return first_row("PRAGMA temp.page_count").at(0) - first_row("PRAGMA temp.freelist_count").at(0);
  };
  const std::int64_t before = pages();
  execute(fmt::format("CREATE TABLE {} ({})", table, kept_columns(columns)));
  execute(fmt::format("INSERT INTO {} {}", table, rows_of(source, most)));
  const std::int64_t rows = sqlite3_changes64(database_.get());
  return {rows, static_cast<double>((pages() - before) * first_row("PRAGMA temp.page_size").at(0))};
}

std::int64_t SqliteDatabase::count_rows(const std::string& source, std::int64_t most) {
  return first_row(fmt::format("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT {})", source, most)).at(0);
}

std::vector<std::string> SqliteDatabase::names() {
  std::vector<std::string> names = names_in("main.sqlite_schema");
  for (std::string& name : names_in("temp.sqlite_temp_schema")) names.push_back(std::move(name));
  return names;
}

std::vector<std::string> SqliteDatabase::tables() { return names_in("main.sqlite_schema WHERE type <> 'index'"); }

std::optional<FoundTable> SqliteDatabase::find_table(const std::string& name) {
  const std::vector<std::string> stored = names_in("main.sqlite_schema WHERE type = 'table' AND rootpage <> 0");
  for (const std::string& table : names_in("main.sqlite_schema")) {
    if (folded(table) == folded(name))
      return FoundTable{new_table(table), std::find(stored.begin(), stored.end(), table) != stored.end()};
  }
  return std::nullopt;
}

std::string SqliteDatabase::new_table(const std::string& name) { return user_table({Dialect::sqlite}, name); }

std::vector<std::string> SqliteDatabase::names_in(const std::string& schema) {
  const Prepared prepared = prepare("SELECT name FROM " + schema, Author::einrel);
  std::vector<std::string> names;
  while (step(prepared.get())) {
    const auto* const name = reinterpret_cast<const char*>(sqlite3_column_text(prepared.get(), 0));
    names.emplace_back(name == nullptr ? "" : name);
  }
  return names;
}

void SqliteDatabase::read_rows(const std::string& query, const TakeRow& take) {
  const Prepared prepared = prepare(query, Author::einrel);
  std::vector<Cell> cells;
  while (step(prepared.get())) {
    cells.clear();
    for (int c = 0; c < sqlite3_column_count(prepared.get()); ++c)
      cells.push_back(cell_of(value_of(sqlite3_column_value(prepared.get(), c))));
    take(cells);
  }
}

void SqliteDatabase::store_elements(const std::string& table, const std::vector<std::string>& keys,
                                    const Elements& elements) {
  execute(element_table(Dialect::sqlite, table, keys, dtype_of(elements)));
  std::string places = "?";
  for (std::size_t i = 0; i < keys.size(); ++i) places += ", ?";
  const Prepared insert = prepare(fmt::format("INSERT INTO {} VALUES ({})", table, places), Author::einrel);
  for_each_element(elements, [&](const Key& key, auto value) {
    int at = 1;
    for (const std::int64_t number : key) sqlite3_bind_int64(insert.get(), at++, number);
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      sqlite3_bind_double(insert.get(), at, value);
    } else {
      sqlite3_bind_int64(insert.get(), at, value);
    }
    step(insert.get());
    sqlite3_reset(insert.get());
  });
}

void SqliteDatabase::store_chunks(const std::string& table, const Relation& chunks, std::size_t key_arity) {
  execute(fmt::format("CREATE TABLE {} ({}chunk)", table, key_columns(key_arity)));
  std::string places;
  for (std::size_t i = 0; i <= key_arity; ++i) places += i == 0 ? "?" : ", ?";
  const Prepared insert = prepare(fmt::format("INSERT INTO {} VALUES ({})", table, places), Author::einrel);
  for (const auto& [key, array] : chunks) {
    const std::vector<std::byte> bytes = array_bytes(array);
    for (std::size_t i = 0; i < key_arity; ++i) sqlite3_bind_int64(insert.get(), static_cast<int>(i) + 1, key[i]);
    const int code =
        sqlite3_bind_blob64(insert.get(), static_cast<int>(key_arity) + 1, bytes.data(), bytes.size(), SQLITE_STATIC);
    if (code != SQLITE_OK) fail(code, Author::einrel);
    step(insert.get());
    sqlite3_reset(insert.get());
  }
}

Relation SqliteDatabase::load_chunks(const std::string& table, std::size_t key_arity) {
  const Prepared query = prepare(fmt::format("SELECT {}chunk FROM {}", key_columns(key_arity), table), Author::einrel);
  Relation chunks;
  while (step(query.get())) {
    Key key;
    for (std::size_t i = 0; i < key_arity; ++i) key.push_back(sqlite3_column_int64(query.get(), static_cast<int>(i)));
    const Tensor view = array_of(value_of(sqlite3_column_value(query.get(), static_cast<int>(key_arity))), "a result");
    Tensor array(view.dtype(), view.shape());
    copy_elements(view.dtype(), view.shape(), {view.data(), view.strides()}, array.mutable_data(), array.strides());
    chunks.emplace(std::move(key), std::move(array));
  }
  return chunks;
}

}  // namespace einrel::sql
