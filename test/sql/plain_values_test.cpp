#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "engine/choose_formats.h"
#include "engine/compile.h"
#include "sql/run.h"
#include "sql/sqlite/database.h"
#include "support/program.h"

/// Plain SQL in SQLite over what is no element.
namespace einrel::test {
namespace {

using sql::SqliteDatabase;

/// Why a run over the table X, with the columns i, j and value, is refused.
std::string refusal(SqliteDatabase& database, const std::string& source, bool is_element) {
  const EinGraph graph =
      compile("plain", einrel::graph_of("dims i=2 j=2\ninput X[i,j] : i32\nZ[i,j] = X[i,j]\n")).graph;
  const ScalarBindings none;
  sql::DatabaseRun run{.graph = graph, .scalars = none, .inputs = {}, .outputs = {}, .chunked = {}};
  run.is_element = is_element;
  if (!is_element) run.chunked = chunked_graph(graph, choose_formats(graph, {}));
  run.inputs.emplace("X", sql::open_table(database, source, {"i", "j"}));
  try {
    sql::run(database, run);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(PlainValues, WhatIsNoElementIsNamedAsInChunks) {
  for (const char* const row : {"1, 0.5, 7", "'a', 0, 7", "NULL, 0, 7", "5, 0, 7", "0, -1, 7", "0, 0, NULL",
                                "0, 0, 'b'", "0, 0, 1.5", "0, 0, 3000000000"}) {
    SCOPED_TRACE(row);
    SqliteDatabase database(":memory:");
    database.execute("CREATE TABLE X (i, j, value)");
    database.execute(fmt::format("INSERT INTO X VALUES ({})", row));
    database.execute("CREATE TABLE rows AS SELECT 1 AS a, 2 AS b UNION ALL SELECT 3, 2.5");
    for (const char* const source : {"table:X", "sparse:table:X", "table:rows"}) {
      const std::string in_chunks = refusal(database, source, false);
      EXPECT_NE(in_chunks, "");
      EXPECT_EQ(refusal(database, source, true), in_chunks);
    }
  }
  SqliteDatabase database(":memory:");
  database.execute("CREATE TABLE X AS SELECT 1 AS i, 0.5 AS j, 7 AS value");
  EXPECT_EQ(refusal(database, "table:X", true),
            "table 'X': column 'j' is 0.5, no whole number, in the row of i=1, j=0.5");
}

}  // namespace
}  // namespace einrel::test
