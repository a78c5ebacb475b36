#pragma once

#include <optional>
#include <set>
#include <string>

#include "einsum/graph/ein_graph.h"
#include "sql/database.h"
#include "sql/program/run.h"
#include "sql/program/user_tables.h"

namespace einrel {

/// What takes room in a run of a database.
struct RoomAsked {
  bool is_element = false;               ///< element by element, else in chunks
  std::set<std::string> sparse = {};     ///< inputs of tables that have rows for few elements
  std::vector<sql::OutputTable> tables;  ///< that outputs become; the others come into the memory of this process
  double kept_bytes = 0;                 ///< that rows of queries and views take already (check_room_of_rows)
};

/// Throws RunError, before anything is computed, where temporary tables, tables of results, or results that come into
/// memory take more than the disk or the machine has left; where that cannot be seen (a server elsewhere), it is not
/// looked for. Returns what is to be said beforehand of much room: "the run takes 80 GB of temporary tables, ...", ""
/// of less than 10 GB; `taker` is "the run takes" there.
std::string check_database_room(sql::Database& database, const EinGraph& graph, const RoomAsked& asked,
                                const std::string& taker);

/// The same of the rows of a query or a view, before they are kept in a temporary table (sql::CheckRows).
std::string check_room_of_rows(sql::Database& database, const std::string& title, const sql::KeptRows& first,
                               const sql::CountRows& count);

}  // namespace einrel
