#include "sql/program_script.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "einsum/text/print.h"
#include "einsum/vertex_facts.h"

namespace einrel::sql {
namespace {

Remarks remarks_of(const EinGraph& graph, const Formats& formats) {
  Remarks remarks;
  for (const Vertex& vertex : graph.vertices) {
    const auto named = formats.tensors.find(vertex.name);
    remarks[vertex.name] = {formula(vertex, graph),
                            named != formats.tensors.end()
                                ? fmt::format("{}, as --formats says", named->second.name)
                                : fmt::format("chunks of at most {} along each dimension", formats.most_extent)};
  }
  return remarks;
}

void append(Script& script, Script more) {
  for (Statement& statement : more) script.push_back(std::move(statement));
}

}  // namespace

std::vector<std::string> dimension_names(const Vertex& vertex) {
  const std::vector<std::optional<std::size_t>> labels = result_labels(vertex);
  std::vector<std::string> names;
  for (std::size_t d = 0; d < vertex.bound.size(); ++d) {
    const bool has_label = !is_input(vertex) && labels[d];
    names.push_back(has_label ? labels_of(vertex)[*labels[d]].name : fmt::format("d{}", d));
  }
  return names;
}

ChunkScript program_script(const EinGraph& graph, const Formats& formats, const ScalarBindings& scalars,
                           const Tables& tables, TableNames& names, KernelTable& kernels) {
  const GraphCuts cuts = cuts_for(graph, formats);
  const TraExpr program = from_einsum(graph, cuts);
  Script script;
  std::map<std::string, std::string> inputs = tables.stored;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    const auto table = tables.inputs.find(vertex.name);
    if (!is_input(vertex) || table == tables.inputs.end()) continue;
    std::vector<DimensionCut> cut;
    for (const std::int64_t parts : cuts.parts[v]) cut.push_back({parts, 1});
    const std::string made = temporary_table(tables.dialect, names.fresh(vertex.name));
    append(script, gather_script(table->second, vertex.name, vertex.dtype, vertex.bound, cut, made, tables.dialect));
    inputs[vertex.name] = made;
  }
  ChunkScript whole =
      chunk_script(program, inputs, scalars, remarks_of(graph, formats), names, kernels, tables.dialect);
  append(script, std::move(whole.statements));
  for (const auto& [name, table] : tables.outputs) {
    const auto vertex = std::find_if(graph.outputs.begin(), graph.outputs.end(),
                                     [&, &tensor = name](VertexId id) { return graph[id].name == tensor; });
    invariant(vertex != graph.outputs.end(), "a table is made of an output");
    append(script, scatter_script(name, whole.tables.at(name), whole.types.at(name), dimension_names(graph[*vertex]),
                                  table, tables.dialect));
  }
  whole.statements = std::move(script);
  return whole;
}

}  // namespace einrel::sql
