#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "einsum/reference.h"
#include "run/compile.h"
#include "sql/element_tables.h"
#include "sql/program/run.h"
#include "sql/sqlite/database.h"
#include "support/program.h"
#include "support/random_einsum.h"
#include "support/rounds.h"

/// Plain SQL over tables that lack rows for zeros, against the reference, which has all elements.
namespace einrel::test {
namespace {

using sql::SqliteDatabase;

/// Two statements over inputs of few elements. Numbers are small and whole, so that each comparison of sums is exact.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : random(seed) {}

  std::string text() {
    std::string program = "dims ";
    for (const char label : labels) program += fmt::format("{}={} ", label, random.between(1, 4));
    type_ = random.chance(0.3) ? "i64" : "f64";
    program += fmt::format("\ninput X[i,j], Y[j,k], V[j] : {}\n", type_);
    program +=
        statement("A", {"X[i,j]", "Y[j,k]", "V[j]", "X[i,0]", "pad(X[i-1,j+1], 0)", "pad(Y[j,k+1], 3)", "i", "0"},
                  {"sum", "sum", "max", "min", "prod"}, true);
    const std::string last = statement("B", {a_, "X[i,j]", "Y[j,k]", "V[j]", "2", "0"},
                                       {"sum", "sum", "mean", "max", "argmax", "logsumexp", "any", "all"}, false);
    return program + last + (random.chance(0.5) ? "output B\n" : "");
  }

  Random random;

 private:
  static constexpr std::string_view labels = "ijk";

  std::string one_of(const std::vector<std::string>& all) {
    return all[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(all.size()) - 1))];
  }

  std::string body(const std::vector<std::string>& leaves, int depth) {
    if (depth == 0) return one_of(leaves);
    const std::string x = body(leaves, depth - 1);
    const std::string y = body(leaves, depth - 1);
    switch (random.between(0, 11)) {
      case 0: return fmt::format("({} + {})", x, y);
      case 1: return fmt::format("({} - {})", x, y);
      case 2: return fmt::format("max({}, {})", x, y);
      case 3: return fmt::format("relu({})", x);
      case 4: return fmt::format("where({} > {}, {}, 0)", x, y, one_of(leaves));
      case 5: return fmt::format("where({}, {}, {})", x, y, one_of(leaves));
      case 6: return fmt::format("({}({} != {}) * {})", type_, x, y, one_of(leaves));
      case 7: return fmt::format("({}({} == {}) + {})", type_, x, y, one_of(leaves));
      default: return fmt::format("({} * {})", x, y);
    }
  }

  std::string statement(const std::string& name, const std::vector<std::string>& leaves,
                        const std::vector<std::string>& reducers, bool is_first) {
    const std::string term = body(leaves, static_cast<int>(random.between(0, 2)));
    std::vector<std::string> stay;
    std::vector<std::string> reduced;
    for (const char label : labels) {
      const bool is_read = std::regex_search(term, std::regex(fmt::format("\\b{}\\b", label)));
      if (is_read) (random.chance(0.5) ? stay : reduced).emplace_back(1, label);
    }
    std::string reducer = one_of(reducers);
    if (reducer == "prod" && reduced.size() > 1) reducer = "sum";  // large products are not exact
    const std::string key = fmt::format("{}[{}]", name, fmt::join(stay, ","));
    if (is_first) a_ = key;
    return fmt::format("{} = {}{}({})\n", key,
                       reduced.empty() ? "" : fmt::format("{}[{}] ", reducer, fmt::join(reduced, ",")), type_, term);
  }

  std::string type_;
  std::string a_;
};

Tensor few(Random& random, const Vertex& vertex) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < element_count(vertex.bound); ++i)
    values.push_back(random.chance(0.6) ? 0 : static_cast<double>(random.between(-2, 3)));
  return tensor_of(vertex.dtype, vertex.bound, values);
}

std::vector<std::string> columns_of(const Vertex& vertex) {
  std::vector<std::string> names;
  for (std::size_t d = 0; d < vertex.bound.size(); ++d) names.push_back(fmt::format("d{}", d));
  return names;
}

/// All outputs, from tables of those elements that are not zero.
std::map<std::string, Tensor> in_plain_sql(SqliteDatabase& database, const EinGraph& graph) {
  const ScalarBindings none;
  sql::DatabaseRun run{.graph = graph, .scalars = none, .inputs = {}, .outputs = {}, .chunked = {}, .is_element = true};
  for (const Vertex& vertex : graph.vertices) {
    if (is_input(vertex))
      run.inputs.emplace(vertex.name, sql::open_table(database, "sparse:table:" + vertex.name, columns_of(vertex)));
  }
  return sql::run(database, run).tensors;
}

/// A program over tables from which rows of zeros are absent; where `are_empty`, all rows are.
void expect_what_the_reference_does(const std::string& text, Random& random, bool are_empty = false) {
  SCOPED_TRACE(text);
  const EinGraph graph = einrel::graph_of(text);
  SqliteDatabase database(":memory:");
  TensorBindings inputs;
  for (const Vertex& vertex : graph.vertices) {
    if (!is_input(vertex)) continue;
    inputs.emplace(vertex.name, are_empty ? Tensor(vertex.dtype, vertex.bound) : few(random, vertex));
    make_element_table(database, vertex.name, inputs.at(vertex.name), columns_of(vertex));
    database.execute(fmt::format("DELETE FROM {} WHERE \"value\" = 0", vertex.name));
  }
  const std::vector<Tensor> wanted = evaluate_reference(graph, inputs, {});
  const std::map<std::string, Tensor> found = in_plain_sql(database, compile("random", graph).graph);
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t o = 0; o < wanted.size(); ++o) {
    const std::vector<double> want = values_of(wanted[o]);
    const std::vector<double> got = values_of(found.at(graph[graph.outputs[o]].name));
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 1e-12 * std::max(1.0, std::abs(want[i]))) << "element " << i;
  }
}

TEST(PlainSparse, ComputesWhatTheReferenceDoesWhereRowsAreAbsent) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(1500)); ++seed) {
    SCOPED_TRACE(seed);
    RandomProgram program(seed);
    expect_what_the_reference_does(program.text(), program.random);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(PlainSparse, LabelsMayBeShorterThanWhatTheyWalkThrough) {
  Random random(3);
  for (const char* const program : {"dims a=5 i=3\ninput X[a] : f64\nZ[] = sum[i] pad(X[i], 0)\n",
                                    "dims a=5 i=3\ninput X[a] : f64\nZ[i] = 2 * pad(X[i], 0)\n",
                                    "dims a=5 i=3\ninput X[a] : f64\nT[i] = 3 * pad(X[i], 0)\nZ[] = sum[i] T[i] + 1\n",
                                    "dims a=6\ninput X[a] : f64\nS[] = sum[i] where(X[i] > 0, X[i+1] + 1, 0)\n",
                                    "dims a=6\ninput X[a] : f64\nD[i] = X[i] * X[i+2]\nS[] = sum[i] D[i] + 1\n",
                                    "dims a=6 i=3\ninput X[a] : f64\nZ[i] = X[i] + pad(X[i+1], 0)\n"}) {
    for (int round = 0; round < 20; ++round) expect_what_the_reference_does(program, random);
  }
}

TEST(PlainSparse, ViewsMayBeNumbersAndHaveNoElements) {
  Random random(5);
  const std::string number = "dims a=1 b=1\ninput One[a,b] : f64\nNumber[] = view One[1,1]\nZ[] = Number[] + 1\n";
  for (const bool are_empty : {false, true}) {
    expect_what_the_reference_does(number, random, are_empty);
    expect_what_the_reference_does(number + "output Number\n", random, are_empty);
    expect_what_the_reference_does("dims i=0 j=3\ninput X[i,j] : f64\nZ[j,i] = view X[i,j]\n", random, are_empty);
    expect_what_the_reference_does("dims i=2 j=3\ninput X[i,j] : f64\nZ[j,i] = view X[i,j]\n", random, are_empty);
  }
}

TEST(PlainSparse, ExtentsMayBeFarLargerThanMemory) {
  const EinGraph graph = einrel::graph_of(
      "dims i=100000 j=100000 k=3\ninput X[i,j], Y[j,k], V[j] : f64\n"
      "Z[i,j] = where(X[i,j] > 1, 2 * X[i,j], 0) * V[j]\n"
      "P[k] = sum[i,j] Z[i,j] * Y[j,k]\ncount[] = sum[i,j] (X[i,j] != 0)\nmiddle[] = mean[i,j] X[i,j]\n"
      "half[] = sum[i,j] (X[i,j] / 2)\nsquares[] = sum[i,j] (X[i,j] ** 2)\n"
      "output P, count, middle, half, squares\n");
  SqliteDatabase database(":memory:");
  database.execute(
      "CREATE TABLE X AS SELECT column1 AS d0, column2 AS d1, column3 AS value FROM (VALUES (7, 99999, 2.0), "
      "(99999, 5, 3.0), (0, 5, 1.0))");
  database.execute("CREATE TABLE Y AS SELECT 5 AS d0, 1 AS d1, 10.0 AS value UNION ALL SELECT 99999, 2, 1.0");
  database.execute("CREATE TABLE V AS SELECT 5 AS d0, 7.0 AS value");
  const std::map<std::string, Tensor> found = in_plain_sql(database, compile("large", graph).graph);
  EXPECT_EQ(values_of(found.at("P")), (std::vector<double>{0, 2 * 3 * 7 * 10, 0}));
  EXPECT_EQ(values_of(found.at("count")), (std::vector<double>{3}));
  EXPECT_EQ(values_of(found.at("half")), (std::vector<double>{3}));
  EXPECT_EQ(values_of(found.at("squares")), (std::vector<double>{14}));
  EXPECT_EQ(values_of(found.at("middle")), (std::vector<double>{6e-10}));
}

TEST(PlainSparse, ResultsInTablesHaveAllRows) {
  const EinGraph graph = einrel::graph_of("dims i=2 j=3\ninput X[i,j] : f64\nZ[j,i] = 2 * X[i,j]\n");
  SqliteDatabase database(":memory:");
  database.execute("CREATE TABLE X AS SELECT 1 AS d0, 2 AS d1, 5.0 AS value");
  const ScalarBindings none;
  const EinGraph compiled = compile("table", graph).graph;
  sql::DatabaseRun run{
      .graph = compiled, .scalars = none, .inputs = {}, .outputs = {{"Z", "Z"}}, .chunked = {}, .is_element = true};
  run.inputs.emplace("X", sql::open_table(database, "sparse:table:X", {"d0", "d1"}));
  sql::run(database, run);
  EXPECT_EQ(database.first_row("SELECT count(*), sum(value = 0), sum(value = 10 AND j = 2 AND i = 1) FROM Z"),
            (std::vector<std::int64_t>{6, 5, 1}));
}

TEST(PlainSparse, NamesOfLabelsAreNotThoseInsideOfQueries) {
  for (const std::string name : {"place", "position", "places", "term", "largest", "product", "k0", "i", "few", "x0"}) {
    for (const std::string reducer : {"argmax", "argmin", "logsumexp", "prod", "sum"}) {
      const std::string text =
          fmt::format("dims {0}=3 b=2\ninput X[{0},b] : f64\nZ[{0}] = {1}[b] X[{0},b]\n", name, reducer);
      SCOPED_TRACE(text);
      const EinGraph graph = einrel::graph_of(text);
      const Tensor x = tensor_of(DType::f64, make_shape({3, 2}), {1, 2, 4, 3, -1, 5});
      const Tensor wanted = evaluate_reference(graph, {{"X", x}}, {}).at(0);
      const ScalarBindings none;
      const EinGraph compiled = compile("names", graph).graph;
      sql::DatabaseRun run{
          .graph = compiled, .scalars = none, .inputs = {{"X", x}}, .outputs = {}, .chunked = {}, .is_element = true};
      SqliteDatabase database(":memory:");
      const std::vector<double> got = values_of(sql::run(database, run).tensors.at("Z"));
      const std::vector<double> want = values_of(wanted);
      for (std::size_t i = 0; i < want.size(); ++i) EXPECT_DOUBLE_EQ(got.at(i), want[i]);
    }
  }
}

}  // namespace
}  // namespace einrel::test
