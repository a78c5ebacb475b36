#include "sql/sqlite/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/vertex_facts.h"

namespace einrel::sql {
namespace {

constexpr std::string_view table_prefix = "table:";
constexpr std::string_view query_prefix = "query:";

bool has_table(const std::vector<std::string>& tables, const std::string& name) {
  return std::any_of(tables.begin(), tables.end(),
                     [&](const std::string& table) { return folded(table) == folded(name); });
}

void check_outputs(const DatabaseRun& run, Database& database) {
  const std::vector<std::string> tables = database.tables();
  std::set<std::string> made;
  for (const auto& [tensor, table] : run.outputs) {
    if (has_table(tables, table))
      throw UserError(fmt::format("{} has a table '{}' already; drop it, or name another one for {}", database.title(),
                                  printable(table), tensor));
    if (!made.insert(folded(table)).second)
      throw UserError(fmt::format("two tensors cannot both become the table '{}'", printable(table)));
  }
}

}  // namespace

UserTable open_table(Database& database, const std::string& given, const std::vector<std::string>& labels) {
  if (given.starts_with(query_prefix)) {
    const std::string query = given.substr(query_prefix.size());
    const std::vector<std::string> columns = database.columns_of(query);
    std::string body = query.substr(0, query.find_last_not_of(" \t\r\n;") + 1);
    return read_columns("(" + body + "\n)", fmt::format("the query '{}'", printable(query, 60)), columns, labels);
  }
  if (!given.starts_with(table_prefix))
    throw UserError(fmt::format("'{}' is neither table:NAME nor query:SELECT ...", printable(given)));
  const std::string name = given.substr(table_prefix.size());
  const std::vector<std::string> tables = database.tables();
  if (!has_table(tables, name)) {
    const std::string near = did_you_mean(name, tables);
    throw UserError(
        fmt::format("{} has no table '{}'{}", database.title(), printable(name), near.empty() ? "" : "; " + near));
  }
  const std::string source = file_table(name);
  return read_columns(source, fmt::format("table '{}'", printable(name)),
                      database.columns_of("SELECT * FROM " + source, Author::einrel), labels);
}

Shape extents_of(Database& database, const UserTable& table, std::size_t rank) {
  std::vector<std::int64_t> extents = database.first_row(extents_query(table));
  extents.resize(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    if (extents[d] < 0 || extents[d] > most_key_value)
      throw UserError(fmt::format("{}: column '{}' has keys up to {}, and none from 0 to {}", table.title,
                                  printable(table.columns[d]), extents[d] - 1, most_key_value));
  }
  return make_shape(extents);
}

std::map<std::string, Tensor> run(Database& database, const DatabaseRun& run) {
  Transaction transaction(database);
  check_outputs(run, database);
  std::vector<std::string> taken = database.tables();
  for (const std::string& name : database.temporary_tables()) taken.push_back(name);
  TableNames names(taken);
  Tables tables;
  for (const auto& [tensor, table] : run.outputs) tables.outputs.emplace_back(tensor, file_table(table));
  for (std::size_t v = 0; v < run.graph.vertices.size(); ++v) {
    const Vertex& vertex = run.graph.vertices[v];
    if (!is_input(vertex)) continue;
    const DatabaseInput& input = run.inputs.at(vertex.name);
    if (const auto* const table = std::get_if<UserTable>(&input)) {
      tables.inputs.emplace(vertex.name, *table);
      continue;
    }
    std::vector<DimensionCut> cut;
    for (const std::int64_t parts : run.chunked.cuts.parts[v]) cut.push_back({parts, 1});
    const std::string stored = "temp." + quoted(names.fresh(vertex.name));
    database.store_chunks(stored, cut_tensor(std::get<Tensor>(input), cut_of_all(cut)), cut.size());
    tables.stored[vertex.name] = stored;
  }
  const ChunkScript script = program_script(run.graph, run.chunked, run.scalars, tables, names, database.kernels());
  for (const Statement& statement : script.statements) database.execute(statement.text);
  std::map<std::string, Tensor> results;
  for (const VertexId id : run.graph.outputs) {
    const Vertex& vertex = run.graph[id];
    const bool is_table = std::any_of(run.outputs.begin(), run.outputs.end(),
                                      [&](const auto& output) { return output.first == vertex.name; });
    if (is_table) continue;
    const Relation chunks = database.load_chunks(script.tables.at(vertex.name), script.types.at(vertex.name).key_arity);
    results.emplace(vertex.name, assemble(chunks, vertex.dtype, vertex.bound.size()));
  }
  for (const std::string& name : names.given()) database.execute("DROP TABLE temp." + quoted(name));
  transaction.commit();
  return results;
}

}  // namespace einrel::sql
