/// @file
/// Programs that run in a database, and programs as SQL.
#pragma once

#include <einrel/program.h>
#include <einrel/tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

namespace einrel::api {

/// How a program is written as SQL.
struct SqlOptions {
  std::string dialect = "sqlite";              ///< or "postgres", "duckdb"
  std::optional<std::string> formats = {};     ///< as of DatabaseOptions; "element": plain SQL, without functions
  std::map<std::string, double> scalars = {};  ///< the program's; those with a default may be left out
  std::optional<std::string> schema = {};      ///< of PostgreSQL, where the tables of the script are; else public
};

/// The program as a script: inputs are tables with the names of the tensors, a column for each label and `value`, and
/// outputs become such. Throws UserError while extents are open, for a program with state, and for what a dialect
/// cannot say (docs/sql.md).
std::string to_sql(const Program& program, const SqlOptions& options = {});

/// The formats of a program in a database, and what they cost.
struct DatabaseAnalysis {
  std::string text;  ///< as `einrel sql --explain` prints it, or `einrel run --database ... --analyze`
  std::string json;  ///< the same with --json
};

/// Which formats are chosen, and what they are predicted to cost, without a run. Throws UserError while extents are
/// open, and for the formats "element", which are no chunks, as for DuckDB, which takes no others.
DatabaseAnalysis explain_sql(const Program& program, const SqlOptions& options = {});

/// An input of a run in a database: a tensor that is brought, or "table:NAME" or "query:SELECT ..." there. Behind
/// "sparse:", a table or query has a row for each element that is not zero.
using DatabaseInput = std::variant<Tensor, std::string>;

/// How to run in a database.
struct DatabaseOptions {
  std::map<std::string, std::string> tables = {};  ///< tensors, and the new tables that they become
  std::map<std::string, std::string> chunks = {};  ///< the same for tables of chunks, as they were computed
  std::map<std::string, double> scalars = {};      ///< the program's; those with a default may be left out
  std::optional<std::string> formats = {};         ///< how tensors are cut: "A=row-strip-100,tile-500" (docs/sql.md)
  std::optional<std::int64_t> steps = {};          ///< of a program with state, at most; else one
  bool analyze = false;                            ///< give DatabaseResult::analysis
  /// Once it is asked for, the statement that runs ends, and the run with RunError; the database is as before.
  std::stop_token stop = {};
};

/// What a run in a database gives.
struct DatabaseResult {
  std::map<std::string, Tensor> outputs;          ///< those that became no tables, by name
  std::int64_t steps = 1;                         ///< that were done
  std::optional<DatabaseAnalysis> analysis = {};  ///< with DatabaseOptions::analyze; beside it what the database took
};

/// Runs a program where data are, in one transaction: when it fails, the database is as before. `database` is
/// "sqlite:FILE" or "postgresql://HOST/DATABASE"; `inputs` may also name states, which then begin with that. Tables and
/// queries are those that `einrel run --database` takes (docs/sql.md). Throws UserError for data that are no tensor (a
/// NULL, a hole, a key that is there twice), naming table, column and key; for a table that is there already; and as
/// Program::run does.
DatabaseResult run_in_database(const Program& program, const std::string& database,
                               const std::map<std::string, DatabaseInput>& inputs, const DatabaseOptions& options = {});

/// Measures a database, and keeps what it finds among the user's settings: formats are chosen by that from then on, as
/// after `einrel calibrate --database`. The database stays as it was. Takes a minute or two; once `stop` is asked for,
/// it ends with RunError. Returns what is to be said of it, as text. Throws UserError where there is no such database.
std::string calibrate_database(const std::string& database, const std::stop_token& stop = {});

}  // namespace einrel::api
