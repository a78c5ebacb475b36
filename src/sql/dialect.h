#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sql/program/script.h"
#include "tensor/dtype.h"
#include "tra/formats.h"

namespace einrel::sql {

/// Where the extension of PostgreSQL is: in a schema of its own, in which nobody else may make anything.
inline constexpr const char* extension_schema = "einrel";

/// Whose SQL it is.
enum class Dialect { sqlite, postgres, duckdb };

/// "sqlite", "postgres", "duckdb". Throws UserError for any other name.
Dialect dialect_named(const std::string& name);

/// Whose SQL a printed script is, and where the tables of the user are that it reads and makes.
struct ScriptTarget {
  Dialect dialect = Dialect::sqlite;
  std::string schema = "public";  ///< in PostgreSQL
};
/// Throws UserError as dialect_named does, and for a schema in a dialect other than PostgreSQL.
ScriptTarget script_target(const std::string& dialect, const std::optional<std::string>& schema);

/// What statements of ours find names and operators in: nobody but the server's owner makes anything there. What is the
/// user's has its schema before it, or is read as the user finds it.
inline constexpr const char* own_search_path = "search_path = pg_catalog, pg_temp";

/// What a database knows of a column before it reads it. In SQLite any value may stand in any column.
enum class ColumnType { any, whole, numeric, real, boolean, bytes, other };
struct Column {
  std::string name;
  ColumnType type = ColumnType::any;
  std::string type_name = {};  ///< of `bytes` and `other`: "bytea", "text"
};

// What the dialects that run chunks, SQLite and PostgreSQL, say differently. Expressions are SQL.

/// A function of Einrel's (functions.h) as statements call it. In PostgreSQL it has its schema before it: without, a
/// function of the same name that somebody else has made may fit its arguments better, and is called with the rights of
/// who runs the statement.
std::string own_function(Dialect dialect, const char* name);

/// A table that goes with the connection, and one of the user's; quoted.
std::string temporary_table(Dialect dialect, const std::string& name);
std::string user_table(const ScriptTarget& target, const std::string& name);

/// How processes of a server share the work of a statement: each computes a part of its rows, of tables that all of
/// them see. They see no temporary ones.
struct Sharing {
  std::string schema;                                            ///< of those tables, quoted
  std::int64_t parts = 2;                                        ///< of a statement; a power of two
  double most_operations_alone = einrel::most_operations_alone;  ///< see is_worth_sharing
};
/// A table of chunks, which goes with the run; quoted. The beginning of the statement that makes it.
std::string chunk_table(Dialect dialect, const std::optional<Sharing>& sharing, const std::string& name);
std::string create_chunks(Dialect dialect, const std::string& table);
/// A query of chunks (keys k0, k1, ..., at least one) in parts that no row is in two of.
std::string in_parts(const std::string& query, std::size_t key_arity, std::int64_t parts);

/// Two names that a database takes for the same are equal here.
std::string same_name(Dialect dialect, const std::string& name);
/// Throws UserError where two tables of a script would have the same name, or one a name that the database keeps.
void check_table_names(const std::vector<std::string>& names, Dialect dialect);
/// The most bytes of a name.
std::size_t most_name_bytes(Dialect dialect);
/// Whether a new table may have a column of that name.
bool can_be_column(Dialect dialect, const std::string& name);

/// Joins two tables, ON follows, where rows of the right one are looked for by those of the left, not the other way
/// round: SQLite would then put the chunks of the left one into an index of its own, in small pages.
std::string join_from_left(Dialect dialect);
std::string least(Dialect dialect, const std::string& a, const std::string& b);
std::string greatest(Dialect dialect, const std::string& a, const std::string& b);
/// A condition as 0 or 1, and a number as a condition.
std::string number_of_condition(Dialect dialect, const std::string& condition);
std::string condition_of_number(Dialect dialect, const std::string& number);
/// 0, 1, ..., n - 1 as column i of a query; n is at least 1.
std::string numbers_below(Dialect dialect, std::int64_t n);
/// A number of the type of keys, where it would have another one: as the first of a column (later rows take its type),
/// and for functions and operators of PostgreSQL that have none of the type of keys beside the type of small numbers.
/// Somebody else may have made one, which would fit better than the server's own.
std::string typed_key(Dialect dialect, std::int64_t key);
/// Whether a value of a column, as `expression`, is a whole number from `low` to `high`, and that number.
std::string is_whole(Dialect dialect, ColumnType type, const std::string& expression, std::int64_t low,
                     std::int64_t high);
std::string as_whole(ColumnType type, const std::string& expression);
/// The types of key columns, of arrays, and of a column of such elements.
const char* key_type(Dialect dialect);
const char* array_type(Dialect dialect);
const char* element_type(Dialect dialect, DType dtype);
/// The columns `value`, d0, d1, ... of the elements of an array, to stand in FROM as e.
std::string elements_from(Dialect dialect, const std::string& array, DType dtype, std::size_t rank);
/// Makes a table (quoted) of chunks keep them as they come: they hardly shrink, and parts of them are read.
Script uncompressed_chunks(Dialect dialect, const std::string& table);
/// An index of a temporary table of chunks, for joins on these columns. Without one, SQLite makes its own for each
/// join, with a copy of all chunks; PostgreSQL needs none.
Script index_for_join(Dialect dialect, const std::string& table, const std::vector<std::string>& columns);
/// Makes a table of chunks out of a query that reads what is not ours, and only reads, whatever functions it calls.
Script store_query(Dialect dialect, const std::string& about, const std::string& table, std::size_t key_arity,
                   const std::string& query);

}  // namespace einrel::sql
