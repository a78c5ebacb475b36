#include "sql/program/plain_run.h"

#include <algorithm>

#include "base/error.h"
#include "einsum/graph/vertex_facts.h"
#include "sql/program/elements.h"
#include "sql/program/plain.h"

namespace einrel::sql {
namespace {

/// Those that become no tables.
std::vector<const Vertex*> other_outputs(const DatabaseRun& run) {
  std::vector<const Vertex*> others;
  for (const VertexId id : run.graph.outputs) {
    const bool is_table = std::any_of(run.outputs.begin(), run.outputs.end(),
                                      [&](const OutputTable& output) { return output.tensor == run.graph[id].name; });
    if (!is_table) others.push_back(&run.graph[id]);
  }
  return others;
}

void execute(Database& database, const DatabaseRun& run, const std::string& statement) {
  if (run.stop.stop_requested()) throw stopped();
  database.execute(statement);
}

/// Of an input. One that is a result, too, is read back whole.
Elements elements_of(Database& database, const DatabaseRun& run, const Vertex& input) {
  const DatabaseInput& given = run.inputs.at(input.name);
  const auto* const table = std::get_if<UserTable>(&given);
  if (table == nullptr) return std::get<Tensor>(given);
  const bool is_result = std::any_of(run.graph.outputs.begin(), run.graph.outputs.end(),
                                     [&](const VertexId id) { return run.graph[id].name == input.name; });
  if (table->is_sparse && !is_result && !input.bound.empty())
    return read_few_elements(database, *table, input.dtype, input.bound);
  return read_elements(database, *table, input.dtype, input.bound);
}

}  // namespace

DatabaseResults run_elements(Database& database, const DatabaseRun& run) {
  TableNames names(database.names(), most_name_bytes(database.dialect()));
  const Dialect dialect = database.dialect();
  ElementTables tables;
  for (const OutputTable& output : output_places(run, database)) tables.outputs[output.tensor] = output.table;
  for (const Vertex* const vertex : other_outputs(run)) {
    if (!is_input(*vertex)) tables.outputs[vertex->name] = temporary_table(dialect, names.fresh(vertex->name));
  }
  for (const Vertex& vertex : run.graph.vertices) {
    if (!is_input(vertex)) continue;
    ElementTable& table = tables.inputs[vertex.name];
    table = {temporary_table(dialect, names.fresh(vertex.name)), key_column_names(dimension_names(vertex), dialect)};
    const Elements elements = elements_of(database, run, vertex);
    table.is_sparse = std::holds_alternative<FewElements>(elements);
    const auto* const given = std::get_if<UserTable>(&run.inputs.at(vertex.name));
    if (given != nullptr && !given->kept.empty()) execute(database, run, "DROP TABLE " + given->kept);
    database.store_elements(table.name, table.columns, elements);
  }
  for (const Statement& statement : plain_script(run.graph, tables, run.scalars, names, dialect))
    execute(database, run, statement.text);
  DatabaseResults results;
  for (const Vertex* const vertex : other_outputs(run)) {
    const std::vector<std::string> keys = key_column_names(dimension_names(*vertex), dialect);
    const std::string& table =
        is_input(*vertex) ? tables.inputs.at(vertex->name).name : tables.outputs.at(vertex->name);
    results.tensors.emplace(vertex->name, read_result(database, table, keys, *vertex));
  }
  for (const std::string& name : names.given()) execute(database, run, "DROP TABLE " + temporary_table(dialect, name));
  return results;
}

}  // namespace einrel::sql
