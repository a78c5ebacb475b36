#include "sql/database.h"

#include <fmt/format.h>

#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "sql/postgres/database.h"
#include "sql/sqlite/database.h"

namespace einrel::sql {
namespace {

constexpr std::string_view sqlite_prefix = "sqlite:";
constexpr std::string_view postgres_prefixes[] = {"postgresql://", "postgres://"};

bool is_postgres(const std::string& url) {
  for (const std::string_view prefix : postgres_prefixes) {
    if (url.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

void check_database_url(const std::string& url) {
  if (url.find('\0') != std::string::npos)
    throw UserError(fmt::format("the database '{}' has a NUL byte in its name, which none has", printable(url)));
  const bool is_sqlite = url.starts_with(sqlite_prefix) && url.size() > sqlite_prefix.size();
  if (is_sqlite || is_postgres(url)) return;
  throw UserError(fmt::format("--database: write sqlite:FILE or postgresql://HOST/DATABASE, not '{}'", printable(url)));
}

std::unique_ptr<Database> open_database(const std::string& url, MissingFile missing) {
  check_database_url(url);
  if (is_postgres(url)) return std::make_unique<PostgresDatabase>(url);
  return std::make_unique<SqliteDatabase>(url.substr(sqlite_prefix.size()), missing);
}

std::vector<std::string> files_of_database(const std::string& url) {
  if (!url.starts_with(sqlite_prefix)) return {};
  const std::string file = url.substr(sqlite_prefix.size());
  return {file, file + "-journal", file + "-wal", file + "-shm"};
}

namespace {

void undo(Database& database) {
  try {
    database.execute("ROLLBACK");
  } catch (const std::exception&) {  // it is rolled back by itself after some errors, and when the connection closes
  }
}

}  // namespace

Transaction::Transaction(Database& database, Access access) : database_(database) {
  try {
    database_.begin(access);
  } catch (const std::exception&) {  // perhaps after it began
    undo(database_);
    throw;
  }
}

Transaction::~Transaction() {
  if (is_open_) undo(database_);
}

void Transaction::commit() {
  database_.commit();
  is_open_ = false;
}

}  // namespace einrel::sql
