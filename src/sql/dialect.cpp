#include "sql/dialect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "sql/program/names.h"

namespace einrel::sql {
namespace {

bool is_postgres(Dialect dialect) { return dialect == Dialect::postgres; }

constexpr const char* temporary_schema = "pg_temp.";

}  // namespace

Dialect dialect_named(const std::string& name) {
  if (name == "sqlite") return Dialect::sqlite;
  if (name == "postgres") return Dialect::postgres;
  if (name == "duckdb") return Dialect::duckdb;
  const std::string near = did_you_mean(name, {"sqlite", "postgres", "duckdb"});
  throw UserError(fmt::format("there is no dialect '{}'; {}", printable(name),
                              near.empty() ? "it is one of sqlite, postgres and duckdb" : near));
}

ScriptTarget script_target(const std::string& dialect, const std::optional<std::string>& schema) {
  ScriptTarget target{dialect_named(dialect)};
  if (!schema) return target;
  if (!is_postgres(target.dialect))
    throw UserError(
        fmt::format("a schema is of PostgreSQL's scripts, not of {}; leave out '{}'", dialect, printable(*schema)));
  if (schema->empty()) throw UserError("the schema of the script's tables has no name");
  target.schema = *schema;
  return target;
}

std::string own_function(Dialect dialect, const char* name) {
  return is_postgres(dialect) ? fmt::format("{}.{}", extension_schema, name) : name;
}

std::string temporary_table(Dialect dialect, const std::string& name) {
  return (is_postgres(dialect) ? temporary_schema : "temp.") + quoted_name(name);
}

std::string chunk_table(Dialect dialect, const std::optional<Sharing>& sharing, const std::string& name) {
  return sharing ? sharing->schema + "." + quoted_name(name) : temporary_table(dialect, name);
}

std::string create_chunks(Dialect dialect, const std::string& table) {
  const bool is_shared = is_postgres(dialect) && !table.starts_with(temporary_schema);
  return fmt::format("CREATE {}TABLE {}", is_shared ? "UNLOGGED " : "", table);
}

std::string in_parts(const std::string& query, std::size_t key_arity, std::int64_t parts) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < key_arity; ++i) keys.push_back(fmt::format("k{}", i));
  std::string text;
  for (std::int64_t part = 0; part < parts; ++part) {
    text += fmt::format("{}SELECT * FROM (\n{}) AS part WHERE ({}) & {} = {}", part == 0 ? "" : "\nUNION ALL\n", query,
                        fmt::join(keys, " + "), typed_key(Dialect::postgres, parts - 1), part);
  }
  return text;
}

std::string user_table(const ScriptTarget& target, const std::string& name) {
  switch (target.dialect) {
    case Dialect::sqlite: return "main." + quoted_name(name);
    case Dialect::postgres: return quoted_name(target.schema) + "." + quoted_name(name);
    case Dialect::duckdb: return quoted_name(name);
  }
  throw Bug("a dialect outside its enumeration");
}

std::string same_name(Dialect dialect, const std::string& name) { return is_postgres(dialect) ? name : folded(name); }

void check_table_names(const std::vector<std::string>& names, Dialect dialect) {
  std::map<std::string, std::string> known;
  for (const std::string& name : names) {
    if (dialect == Dialect::sqlite && folded(name).starts_with("sqlite_"))
      throw UserError(fmt::format("SQLite has no tables called {}: it keeps such names for itself", printable(name)));
    const auto [other, is_new] = known.emplace(same_name(dialect, name), name);
    if (!is_new)
      throw UserError(fmt::format("a script cannot have both tables {} and {}: to databases they have the same name",
                                  other->second, name));
  }
}

std::size_t most_name_bytes(Dialect dialect) {
  return is_postgres(dialect) ? 63 : std::numeric_limits<std::size_t>::max();
}

bool can_be_column(Dialect dialect, const std::string& name) {
  // PostgreSQL gives each table columns of these names.
  constexpr std::array<std::string_view, 6> own{"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"};
  const bool is_own = is_postgres(dialect) && std::find(own.begin(), own.end(), name) != own.end();
  return !is_own && name.size() <= most_name_bytes(dialect);
}

std::string join_from_left(Dialect dialect) { return is_postgres(dialect) ? " JOIN " : " CROSS JOIN "; }

std::string least(Dialect dialect, const std::string& a, const std::string& b) {
  return fmt::format("{}({}, {})", dialect == Dialect::sqlite ? "min" : "least", a, b);
}

std::string greatest(Dialect dialect, const std::string& a, const std::string& b) {
  return fmt::format("{}({}, {})", dialect == Dialect::sqlite ? "max" : "greatest", a, b);
}

std::string number_of_condition(Dialect dialect, const std::string& condition) {
  return is_postgres(dialect) ? fmt::format("CAST({} AS integer)", condition) : condition;
}

std::string condition_of_number(Dialect dialect, const std::string& number) {
  return is_postgres(dialect) ? fmt::format("({} <> 0)", number) : number;
}

std::string numbers_below(Dialect dialect, std::int64_t n) {
  if (is_postgres(dialect))
    return fmt::format("SELECT i FROM generate_series({}, {}) AS numbers(i)", typed_key(dialect, 0),
                       typed_key(dialect, n - 1));
  return fmt::format(
      "WITH RECURSIVE numbers(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < {}) "
      "SELECT i FROM numbers",
      n);
}

std::string typed_key(Dialect dialect, std::int64_t key) {
  return is_postgres(dialect) ? fmt::format("CAST({} AS bigint)", key) : fmt::format("{}", key);
}

std::string is_whole(Dialect dialect, ColumnType type, const std::string& expression, std::int64_t low,
                     std::int64_t high) {
  std::string between = fmt::format("{} BETWEEN {} AND {}", expression, low, high);
  if (!is_postgres(dialect)) return fmt::format("typeof({}) = 'integer' AND {}", expression, between);
  if (type == ColumnType::whole) return between;
  return type == ColumnType::numeric ? fmt::format("{0} = floor({0}) AND {1}", expression, between) : "FALSE";
}

std::string as_whole(ColumnType type, const std::string& expression) {
  if (type == ColumnType::any || type == ColumnType::whole) return expression;
  return type == ColumnType::numeric ? fmt::format("CAST({} AS bigint)", expression) : "0";
}

const char* key_type(Dialect dialect) { return is_postgres(dialect) ? "bigint" : "INTEGER"; }

const char* array_type(Dialect dialect) { return is_postgres(dialect) ? "bytea" : "BLOB"; }

const char* element_type(Dialect dialect, DType dtype) {
  if (!is_postgres(dialect)) return is_float(dtype) ? "REAL" : "INTEGER";
  switch (dtype) {
    case DType::f64: return "double precision";
    case DType::i64: return "bigint";
    case DType::i32: return "integer";
    case DType::boolean: return "boolean";
    default: return "real";
  }
}

std::string elements_from(Dialect dialect, const std::string& array, DType dtype, std::size_t rank) {
  std::string columns;
  if (is_postgres(dialect)) {
    columns = fmt::format("(value {}", element_type(dialect, dtype));
    for (std::size_t d = 0; d < rank; ++d) columns += fmt::format(", d{} bigint", d);
    columns += ")";
  }
  return fmt::format("{}({}) AS e{}", own_function(dialect, "einrel_elements"), array, columns);
}

Script uncompressed_chunks(Dialect dialect, const std::string& table) {
  if (!is_postgres(dialect)) return {};
  return {{"", fmt::format("ALTER TABLE {} ALTER COLUMN chunk SET STORAGE EXTERNAL", table)}};
}

Script index_for_join(Dialect dialect, const std::string& table, const std::vector<std::string>& columns) {
  if (is_postgres(dialect)) return {};
  const std::string bare = table.substr(table.find('"'));
  const std::string by = fmt::format("{}", fmt::join(columns, ", "));
  // No tensor has a name with a space, so that no table is called like the index.
  const std::string index = fmt::format("{} by {}\"", bare.substr(0, bare.size() - 1), by);
  return {{"", fmt::format("CREATE INDEX IF NOT EXISTS temp.{} ON {} ({})", index, bare, by)}};
}

Script store_query(Dialect dialect, const std::string& about, const std::string& table, std::size_t key_arity,
                   const std::string& query) {
  if (!is_postgres(dialect)) return {{about, fmt::format("CREATE TABLE {} AS\n{}", table, query)}};
  std::string columns;
  for (std::size_t i = 0; i < key_arity; ++i) columns += fmt::format("k{} bigint, ", i);
  // Only temporary tables can be written after this, and only until the savepoint is released.
  return {{about, fmt::format("CREATE TABLE {} ({}chunk bytea)", table, columns)},
          {"", "SAVEPOINT reading"},
          {"", "SET TRANSACTION READ ONLY"},
          {"", fmt::format("INSERT INTO {}\n{}", table, query)},
          {"", "RELEASE SAVEPOINT reading"}};
}

}  // namespace einrel::sql
