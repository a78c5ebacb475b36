#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sql/database.h"
#include "sql/program/program_script.h"

namespace einrel::sql {

/// What an input is in a database: a table or query of the user, or a tensor that is brought there.
using DatabaseInput = std::variant<UserTable, Tensor>;

/// One step of this graph gives states their first values.
struct FirstValues {
  const EinGraph& graph;
  ChunkedGraph chunked;
};

/// What a run leaves.
struct DatabaseResults {
  std::map<std::string, Tensor> tensors;  ///< the outputs that become no tables
  std::int64_t steps = 1;                 ///< that were done
  std::map<Work, double> seconds = {};    ///< that the database took for each part, all steps together; of chunks only
};

/// A program that runs in a database.
struct DatabaseRun {
  const EinGraph& graph;
  const ScalarBindings& scalars;
  std::map<std::string, DatabaseInput> inputs;  ///< by the name of the vertex
  std::vector<OutputTable> outputs;
  ChunkedGraph chunked;                   ///< views that become tables of chunks are not cut
  std::optional<FirstValues> first = {};  ///< of the states that are no inputs, if there are such
  std::int64_t steps = 1;                 ///< of a program with state, at most
  /// Once it is asked for, the run ends with `stopped` before its next statement, and the database is as before. The
  /// one that runs ends where that calls Database::interrupt.
  std::stop_token stop = {};
  bool is_element = false;  ///< in plain SQL, without `chunked`; of a program without state
  bool is_kept = true;      ///< else the database is as before when the run has ended
  /// Takes the results while all can be undone: where it throws, the database is as before.
  std::function<void(const DatabaseResults&)> before_commit = {};
};

/// Where outputs go, quoted. Throws UserError for a table that is there already.
std::vector<OutputTable> output_places(const DatabaseRun& run, Database& database);

/// A query or a view (for people: "the query 'SELECT ...'") has more rows than the first ones, which were kept to see
/// what they take. How many there are, up to a number, costs computing it once more. What throws keeps it from being
/// computed as a whole.
using CountRows = std::function<std::int64_t(std::int64_t most)>;
using CheckRows = std::function<void(const std::string& title, const KeptRows& first, const CountRows& count)>;

/// In a transaction, in which it is read: a typed_source as columns of a tensor with these labels. All that is read of
/// a query, or of a view, comes of computing it once, here; `check` is asked before that is done where there are many
/// rows. Throws UserError when there is no such table, for a query that does not only read, where the columns fit no
/// layout, and for one of another layout that is said to be sparse.
UserTable open_table(Database& database, const std::string& given, const std::vector<std::string>& labels,
                     const CheckRows& check = {});

/// The extents that the data have; not of chunks, see chunks_in.
Shape extents_of(Database& database, const UserTable& table, std::size_t rank);

/// Runs everything in this transaction, in which the tables of the inputs were opened, and commits it; when it fails,
/// the database is as before. States are tables of chunks from step to step. Throws UserError for data that are no
/// tensor (gather.h) and for a table that is there already, and as program_script and Database do.
DatabaseResults run(Transaction& transaction, const DatabaseRun& run);
/// The same of inputs that are brought, in a transaction of its own.
DatabaseResults run(Database& database, const DatabaseRun& run);

}  // namespace einrel::sql
