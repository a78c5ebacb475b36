#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "sql/plain_programs.h"
#include "sql/sqlite/database.h"

/// Plain SQL in SQLite over special numbers, users' types and names that scripts use.
namespace einrel::test {
namespace {

using sql::SqliteDatabase;

bool is_nan(double number) { return std::isnan(number); }

/// The rows that have so many numbers, NaN left out.
std::vector<std::size_t> rows_with(const std::vector<std::array<double, 3>>& rows, std::ptrdiff_t numbers) {
  std::vector<std::size_t> found;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (std::count_if(rows[r].begin(), rows[r].end(), is_nan) == 3 - numbers) found.push_back(r);
  }
  return found;
}

/// What the reference makes of rows without their NaN, which SQLite has as NULL. Positions are those in the whole row.
void leave_out_nan(const std::vector<std::array<double, 3>>& rows, std::ptrdiff_t numbers,
                   std::map<std::string, std::vector<double>>& wanted) {
  const std::vector<std::size_t> some = rows_with(rows, numbers);
  std::vector<double> values;
  for (const std::size_t r : some)
    std::copy_if(rows[r].begin(), rows[r].end(), std::back_inserter(values), [](double x) { return !is_nan(x); });
  const Tensor x = doubles({static_cast<std::int64_t>(some.size()), numbers}, values);
  const std::string text = reductions(some.size(), static_cast<std::size_t>(numbers));
  for (const auto& [name, tensor] : by_reference(text, {{"X", x}})) {
    const std::vector<double> found = values_of(tensor);
    for (std::size_t at = 0; at < some.size(); ++at) {
      double value = found[at];
      if (name.starts_with("of_arg")) {  // the position of that number
        const auto& row = rows[some[at]];
        auto left = static_cast<int>(value);
        std::size_t place = 0;
        while (is_nan(row[place]) || left-- > 0) ++place;
        value = static_cast<double>(place);
      }
      wanted[name][some[at]] = value;
    }
  }
}

TEST(PlainValues, ReductionsLeaveOutWhatIsNull) {
  const std::vector<std::array<double, 3>> rows = special_rows();
  const std::string text = reductions(rows.size(), 3);
  const NamedTensors inputs{{"X", rows_tensor(rows)}};
  const NamedTensors by_language = by_reference(text, inputs);
  std::map<std::string, std::vector<double>> wanted;
  for (const auto& [name, tensor] : by_language) {  // of nothing but NULL: NULL, and its first position
    const double of_nothing = name.starts_with("of_arg") ? 0 : nan_number;
    wanted[name] = std::vector<double>(rows.size(), of_nothing);
  }
  for (const std::ptrdiff_t numbers : {1, 2, 3}) leave_out_nan(rows, numbers, wanted);
  for (const char* const name : {"of_prod", "of_any", "of_all"}) wanted[name] = values_of(by_language.at(name));
  SqliteDatabase database(":memory:");
  NamedTensors expected;
  for (const auto& [name, values] : wanted)
    expected.emplace(name, tensor_of(by_language.at(name).dtype(), by_language.at(name).shape(), values));
  expect_agreement(in_elements(database, text, inputs), expected, 1);
}

TEST(PlainValues, ExponentialsMayLeaveTheRangeOfDoubles) {
  SqliteDatabase database(":memory:");
  expect_exponentials(database);
}

TEST(PlainValues, PrintedScriptsComputeWithTheTypesOfTheLanguage) {
  for (const char* const type : {"integer", "real", "", "numeric"}) {
    SqliteDatabase database(":memory:");
    expect_types_of_the_language(database, type, "integer", "integer");
  }
}

TEST(PlainValues, TensorsMayHaveAnyNameThatScriptsUse) {
  std::vector<std::string> upper = words_of_scripts();
  for (std::string& word : upper) {
    std::transform(word.begin(), word.end(), word.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  }
  for (const std::vector<std::string>& words : {words_of_scripts(), upper}) {
    for (const Role role : {Role::input, Role::between, Role::output}) {
      SqliteDatabase database(":memory:");
      expect_names_to_be_free(database, words, role);
    }
  }
}

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
