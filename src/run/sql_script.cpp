#include "run/sql_script.h"

#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "base/text.h"
#include "run/database_weights.h"
#include "sql/program/plain.h"
#include "sql/program/program_script.h"

namespace einrel {
namespace {

/// Tables with the names of inputs, whose columns are their labels.
std::map<std::string, sql::UserTable> tables_of(const std::map<std::string, std::vector<std::string>>& labels,
                                                const sql::ScriptTarget& target) {
  std::map<std::string, sql::UserTable> tables;
  for (const auto& [name, own] : labels) {
    std::vector<sql::Column> columns;
    for (const std::string& key : sql::key_column_names(own, target.dialect))
      columns.push_back({key, sql::ColumnType::whole});
    columns.push_back({"value"});
    tables[name] = {sql::user_table(target, name), fmt::format("table '{}'", printable(name)), columns,
                    sql::Layout::elements};
  }
  return tables;
}

sql::Script script_of(const Compiled& compiled, const std::map<std::string, std::vector<std::string>>& labels,
                      const ScalarBindings& scalars, const Formats& formats, const sql::ScriptTarget& target) {
  if (formats.is_element) return sql::plain_script(compiled.graph, labels, scalars, target);
  const sql::Dialect dialect = target.dialect;
  sql::Tables tables{tables_of(labels, target), {}, dialect};
  for (const VertexId id : program_outputs(compiled.graph)) {
    const Vertex& output = compiled.graph[id];
    if (!is_input(output)) tables.outputs.push_back({output.name, sql::user_table(target, output.name)});
  }
  std::vector<std::string> taken;  // databases find temporary tables before others of the same name
  for (const auto& [name, columns] : labels) taken.push_back(name);
  for (const sql::OutputTable& output : tables.outputs) taken.push_back(output.tensor);
  sql::check_table_names(taken, dialect);
  sql::TableNames names(taken, sql::most_name_bytes(dialect));
  sql::KernelTable kernels;
  const sql::ChunkedGraph chunked = chunked_graph(compiled.graph, formats_of_script(compiled.graph, formats, dialect));
  return sql::program_script(compiled.graph, chunked, scalars, tables, names, kernels).statements;
}

}  // namespace

ChosenFormats formats_of_script(const EinGraph& graph, const Formats& formats, sql::Dialect dialect) {
  if (formats.is_element)
    throw UserError("what is explained are formats of chunks; with the formats 'element' there are none");
  return choose_formats(graph, formats, weights_for_scripts(dialect));
}

std::string sql_script(const Compiled& compiled, const std::vector<DeclaredInput>& inputs,
                       const ScalarBindings& scalars, const Formats& formats, const sql::ScriptTarget& target) {
  if (!compiled.graph.steps.states.empty())
    throw UserError(
        fmt::format("{} has state; a script of SQL is of a program without, but a run in a database takes it",
                    printable(compiled.name)));
  std::map<std::string, std::vector<std::string>> labels;
  for (const DeclaredInput& input : inputs) labels[input.name] = input.labels;
  sql::Script script = script_of(compiled, labels, scalars, formats, target);
  if (target.dialect == sql::Dialect::postgres)
    script.insert(script.begin(), {"operators and functions are the server's own, whatever others have made",
                                   fmt::format("SET LOCAL {}", sql::own_search_path)});
  return sql::to_text(script);
}

}  // namespace einrel
