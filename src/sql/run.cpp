#include "sql/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/vertex_facts.h"
#include "sql/elements.h"
#include "sql/plain.h"
#include "sql/steps.h"

namespace einrel::sql {
namespace {

constexpr std::string_view table_prefix = "table:";
constexpr std::string_view query_prefix = "query:";

/// Where outputs go, quoted.
std::vector<std::pair<std::string, std::string>> output_places(const DatabaseRun& run, Database& database) {
  std::vector<std::pair<std::string, std::string>> places;
  std::set<std::string> made;
  for (const auto& [tensor, table] : run.outputs) {
    if (database.find_table(table))
      throw UserError(fmt::format("{} has a table '{}' already; drop it, or name another one for {}", database.title(),
                                  printable(table), tensor));
    places.emplace_back(tensor, database.new_table(table));
    if (!made.insert(same_name(database.dialect(), places.back().second)).second)
      throw UserError(fmt::format("two tensors cannot both become the table '{}'", printable(table)));
  }
  return places;
}

/// Those that become no tables.
std::vector<const Vertex*> other_outputs(const DatabaseRun& run) {
  std::vector<const Vertex*> others;
  for (const VertexId id : run.graph.outputs) {
    const bool is_table = std::any_of(run.outputs.begin(), run.outputs.end(),
                                      [&](const auto& output) { return output.first == run.graph[id].name; });
    if (!is_table) others.push_back(&run.graph[id]);
  }
  return others;
}

/// Element by element, in plain SQL. Inputs go through this process, which checks them.
DatabaseResults run_elements(Database& database, const DatabaseRun& run,
                             const std::vector<std::pair<std::string, std::string>>& places) {
  if (!run.graph.steps.states.empty())
    throw UserError("plain SQL does no steps of programs with state; leave --formats element out");
  const Dialect dialect = database.dialect();
  TableNames names(database.names(), most_name_bytes(dialect));
  ElementTables tables;
  for (const auto& [tensor, place] : places) tables.outputs[tensor] = place;
  for (const Vertex* const vertex : other_outputs(run)) {
    if (!is_input(*vertex)) tables.outputs[vertex->name] = temporary_table(dialect, names.fresh(vertex->name));
  }
  for (const Vertex& vertex : run.graph.vertices) {
    if (!is_input(vertex)) continue;
    ElementTable& table = tables.inputs[vertex.name];
    table = {temporary_table(dialect, names.fresh(vertex.name)), key_column_names(dimension_names(vertex), dialect)};
    const DatabaseInput& input = run.inputs.at(vertex.name);
    const auto* const source = std::get_if<UserTable>(&input);
    database.store_elements(
        table.name, table.columns,
        source == nullptr ? std::get<Tensor>(input) : read_elements(database, *source, vertex.dtype, vertex.bound));
  }
  for (const Statement& statement : plain_script(run.graph, tables, run.scalars, names, dialect))
    database.execute(statement.text);
  DatabaseResults results;
  for (const Vertex* const vertex : other_outputs(run)) {
    const std::vector<std::string> keys = key_column_names(dimension_names(*vertex), dialect);
    const std::string& table =
        is_input(*vertex) ? tables.inputs.at(vertex->name).name : tables.outputs.at(vertex->name);
    results.tensors.emplace(vertex->name, read_result(database, table, keys, *vertex));
  }
  for (const std::string& name : names.given()) database.execute("DROP TABLE " + temporary_table(dialect, name));
  return results;
}

}  // namespace

UserTable open_table(Database& database, const std::string& given, const std::vector<std::string>& labels) {
  if (given.starts_with(query_prefix)) {
    const std::string query = given.substr(query_prefix.size());
    const std::vector<Column> columns = database.columns_of(query, Author::user);
    std::string body = query.substr(0, query.find_last_not_of(" \t\r\n;") + 1);
    return read_columns("(" + body + "\n) AS given", fmt::format("the query '{}'", printable(query, 60)), columns,
                        labels, database.dialect());
  }
  if (!given.starts_with(table_prefix))
    throw UserError(fmt::format("'{}' is neither table:NAME nor query:SELECT ...", printable(given)));
  const std::string name = given.substr(table_prefix.size());
  const std::optional<std::string> source = database.find_table(name);
  if (!source) {
    const std::string near = did_you_mean(name, database.names());
    throw UserError(
        fmt::format("{} has no table '{}'{}", database.title(), printable(name), near.empty() ? "" : "; " + near));
  }
  return read_columns(*source, fmt::format("table '{}'", printable(name)),
                      database.columns_of("SELECT * FROM " + *source, Author::einrel), labels, database.dialect());
}

Shape extents_of(Database& database, const UserTable& table, std::size_t rank) {
  std::vector<std::int64_t> extents = database.first_row(extents_query(table, database.dialect()));
  extents.resize(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    if (extents[d] < 0 || extents[d] > most_key_value)
      throw UserError(fmt::format("{}: column '{}' has keys up to {}, and none from 0 to {}", table.title,
                                  printable(table.columns[d].name), extents[d] - 1, most_key_value));
  }
  return make_shape(extents);
}

DatabaseResults run(Database& database, const DatabaseRun& run) {
  Transaction transaction(database);
  const std::vector<std::pair<std::string, std::string>> places = output_places(run, database);
  DatabaseResults results = run.chunked ? run_steps(database, run, places) : run_elements(database, run, places);
  transaction.commit();
  return results;
}

}  // namespace einrel::sql
