#include "sql/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/vertex_facts.h"
#include "sql/elements.h"
#include "sql/plain.h"

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

/// In chunks, by the functions of Einrel.
std::map<std::string, Tensor> run_chunks(Database& database, const DatabaseRun& run, TableNames& names) {
  database.use_functions();
  const Dialect dialect = database.dialect();
  Tables tables{{}, {}, output_places(run, database), dialect};
  const GraphCuts cuts = cuts_for(run.graph, run.formats);
  for (std::size_t v = 0; v < run.graph.vertices.size(); ++v) {
    const Vertex& vertex = run.graph.vertices[v];
    if (!is_input(vertex)) continue;
    const DatabaseInput& input = run.inputs.at(vertex.name);
    if (const auto* const table = std::get_if<UserTable>(&input)) {
      tables.inputs.emplace(vertex.name, *table);
      continue;
    }
    std::vector<DimensionCut> cut;
    for (const std::int64_t parts : cuts.parts[v]) cut.push_back({parts, 1});
    const std::string stored = temporary_table(dialect, names.fresh(vertex.name));
    database.store_chunks(stored, cut_tensor(std::get<Tensor>(input), cut_of_all(cut)), cut.size());
    tables.stored[vertex.name] = stored;
  }
  const ChunkScript script = program_script(run.graph, run.formats, run.scalars, tables, names, database.kernels());
  for (const Statement& statement : script.statements) database.execute(statement.text);
  std::map<std::string, Tensor> results;
  for (const Vertex* const vertex : other_outputs(run)) {
    const Relation chunks =
        database.load_chunks(script.tables.at(vertex->name), script.types.at(vertex->name).key_arity);
    results.emplace(vertex->name, assemble(chunks, vertex->dtype, vertex->bound.size()));
  }
  return results;
}

/// Element by element, in plain SQL. Inputs go through this process, which checks them.
std::map<std::string, Tensor> run_elements(Database& database, const DatabaseRun& run, TableNames& names) {
  const Dialect dialect = database.dialect();
  ElementTables tables;
  for (const auto& [tensor, place] : output_places(run, database)) tables.outputs[tensor] = place;
  for (const Vertex* const vertex : other_outputs(run)) {
    if (!is_input(*vertex)) tables.outputs[vertex->name] = temporary_table(dialect, names.fresh(vertex->name));
  }
  for (const Vertex& vertex : run.graph.vertices) {
    if (!is_input(vertex)) continue;
    ElementTable& table = tables.inputs[vertex.name];
    table = {temporary_table(dialect, names.fresh(vertex.name)), key_column_names(dimension_names(vertex), dialect)};
    const DatabaseInput& input = run.inputs.at(vertex.name);
    const auto* const source = std::get_if<UserTable>(&input);
    database.store_elements(table.name, table.columns,
                            source == nullptr ? std::get<Tensor>(input)
                                              : read_elements(database, *source, vertex.dtype, vertex.bound));
  }
  for (const Statement& statement : plain_script(run.graph, tables, run.scalars, names, dialect))
    database.execute(statement.text);
  std::map<std::string, Tensor> results;
  for (const Vertex* const vertex : other_outputs(run)) {
    const std::vector<std::string> keys = key_column_names(dimension_names(*vertex), dialect);
    const std::string& table =
        is_input(*vertex) ? tables.inputs.at(vertex->name).name : tables.outputs.at(vertex->name);
    results.emplace(vertex->name, read_result(database, table, keys, *vertex));
  }
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

std::map<std::string, Tensor> run(Database& database, const DatabaseRun& run) {
  Transaction transaction(database);
  TableNames names(database.names(), most_name_bytes(database.dialect()));
  std::map<std::string, Tensor> results =
      run.formats.is_element ? run_elements(database, run, names) : run_chunks(database, run, names);
  for (const std::string& name : names.given())
    database.execute("DROP TABLE " + temporary_table(database.dialect(), name));
  transaction.commit();
  return results;
}

}  // namespace einrel::sql
