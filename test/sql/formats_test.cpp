// Implementations and formats of "Automatic Matrix Format Exploration for Large Scale Linear Algebra", section 9.1, as
// the one rule of plan/formats gives them, each run in SQLite.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "run/choose_formats.h"
#include "sql/direct_transformations.h"
#include "sql/papers_formats.h"
#include "sql/sqlite/database.h"

namespace einrel::test {
namespace {

/// In a database of its own.
void expect_right_alone(const EinGraph& graph, const sql::ChunkedGraph& chunked, const std::string& what) {
  sql::SqliteDatabase database(":memory:");
  expect_right(database, graph, chunked, what);
}

class OneVertex : public testing::TestWithParam<Computation> {};

TEST_P(OneVertex, IsComputedRightInEveryFormat) {
  sql::SqliteDatabase database(":memory:");
  expect_right_in_every_format(database, GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, OneVertex, testing::ValuesIn(computations()), name_of_computation);

TEST(DirectTransformations, AreOneQueryEachInSqlite) {
  sql::SqliteDatabase database(":memory:");
  expect_direct_transformations_to_be_one_query(database);
}

TEST(Transformations, OfAnyFormatToAnyOtherAreOneQueryInSqlite) {
  sql::SqliteDatabase database(":memory:");
  expect_every_transformation_to_be_one_query(database);
}

/// An implementation of a product.
struct Multiplication {
  const char* x;
  const char* y;
  const char* result;
  bool is_folded;  ///< by an aggregate
};

/// Of its 13 the paper names five: single x column, row x column, row-strip x column-strip (chapter 8), column-strip x
/// tile, element x element.
TEST(FormatsOfProducts, AreThoseThatThePaperNamesAndOthersInWhichTheReducedLabelHasOneCut) {
  const EinGraph graph = program("P[i,k] = sum[j] X[i,j] * Y[j,k]");
  const Implementations found = implementations_of(graph, 2, {});
  const std::vector<Multiplication> paper{
      {"single", "single", "single", false},
      {"row", "column", "element", false},
      {"row-strip-10", "column-strip-10", "tile-10-10", false},
      {"column-strip-10", "row-strip-10", "single", true},
      {"column", "row", "single", true},
      {"single", "column", "column", false},
      {"single", "column-strip-10", "column-strip-10", false},
      {"row", "single", "row", false},
      {"row-strip-10", "single", "row-strip-10", false},
      {"tile-10-10", "tile-10-10", "tile-10-10", true},
      {"tile-10-10", "row-strip-10", "row-strip-10", true},
      {"column-strip-10", "tile-10-10", "column-strip-10", true},
      {"element", "element", "element", true},
      {"element", "row", "row", true},
  };
  for (const Multiplication& wanted : paper) {
    const std::string formats = fmt::format("{} x {} -> {}", wanted.x, wanted.y, wanted.result);
    const auto way = std::find_if(found.ways.begin(), found.ways.end(),
                                  [&](const Implementation& each) { return formats_of(graph, 2, each) == formats; });
    ASSERT_NE(way, found.ways.end()) << formats;
    EXPECT_EQ(way->parts[2] > 1, wanted.is_folded) << formats;  // labels i, k, j
  }
}

/// Label j is cut in both operands or in none. So a row strip does not meet tiles: one of them is transformed first.
TEST(FormatsOfProducts, DoNotCutTheReducedLabelInOneOperandOnly) {
  const EinGraph graph = program("P[i,k] = sum[j] X[i,j] * Y[j,k]");
  for (const Implementation& way : implementations_of(graph, 2, {}).ways)
    EXPECT_EQ(way.reads.at(0).format.at(1), way.reads.at(1).format.at(0)) << formats_of(graph, 2, way);
  for (const auto& [x, y] : {std::pair("row-strip-10", "tile-10-10"), std::pair("tile-10-10", "column-strip-10")}) {
    const ChosenFormats chosen = choose_formats(graph, parse_formats(fmt::format("X={},Y={}", x, y)));
    EXPECT_FALSE(chosen.plan.vertices[2].transformations.empty()) << x << " x " << y;
  }
}

TEST(FormatsOfProducts, AreRightWhereOperandsHaveToBeTransformed) {
  const EinGraph graph = program("P[i,k] = sum[j] X[i,j] * Y[j,k]");
  const std::vector<std::string> formats{"single",          "row",        "column",  "row-strip-10",
                                         "column-strip-10", "tile-10-10", "element", "tile-5-4"};
  for (const std::string& x : formats) {
    for (const std::string& y : formats) {
      const std::string given = fmt::format("X={},Y={}", x, y);
      const ChosenFormats chosen = choose_formats(graph, parse_formats(given));
      EXPECT_EQ(format_text(chosen.plan.vertices[0].format, graph.vertices[0].bound), x);
      EXPECT_EQ(format_text(chosen.plan.vertices[1].format, graph.vertices[1].bound), y);
      expect_right_alone(graph, chunked_graph(graph, chosen), given);
    }
  }
}

TEST(FormatsOfPrograms, AreRightWhateverTensorsAreGiven) {
  const EinGraph graph = program(
      "H[i,k] = relu(sum[j] X[i,j] * Y[j,k])\n"
      "P[i,k] = softmax[k](H[i,k])\n"
      "G[j,k] = sum[i] X[i,j] * (P[i,k] - H[i,k])\n");
  for (const char* const tensor : {"X", "H", "P", "G"}) {
    for (const char* const format : {"single", "row", "column-strip-10", "tile-10-10", "tile-3-7", "element"}) {
      const std::string given = fmt::format("{}={}", tensor, format);
      expect_right_alone(graph, chunked_graph(graph, choose_formats(graph, parse_formats(given))), given);
    }
  }
}

}  // namespace
}  // namespace einrel::test
