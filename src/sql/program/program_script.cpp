#include "sql/program/program_script.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "sql/program/chunk_tables.h"
#include "tra/formats.h"

namespace einrel::sql {
namespace {

Remarks remarks_of(const EinGraph& graph, const ChunkedGraph& chunked, const std::optional<Sharing>& sharing) {
  Remarks remarks;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    remarks[vertex.name] = {
        formula(vertex, graph), chunked.reasons.at(vertex.name),
        sharing && einrel::is_worth_sharing(vertex, chunked.cuts.parts[v], sharing->most_operations_alone)};
  }
  return remarks;
}

void append(Script& script, Script more) {
  for (Statement& statement : more) script.push_back(std::move(statement));
}

/// Input `v` of a graph that is cut so, gathered into a table of chunks (`made`, quoted).
Script gather_input(const EinGraph& graph, const GraphCuts& cuts, std::size_t v, const UserTable& table,
                    const std::string& made, Dialect dialect) {
  const Vertex& vertex = graph.vertices[v];
  std::vector<DimensionCut> cut;
  for (const std::int64_t parts : cuts.parts[v]) cut.push_back({parts, 1});
  return gather_script(table, vertex.name, vertex.dtype, vertex.bound, cut, made, dialect);
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

bool is_worth_sharing(const EinGraph& graph, const GraphCuts& cuts) {
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (einrel::is_worth_sharing(graph.vertices[v], cuts.parts[v])) return true;
  }
  return false;
}

ChunkScript vertex_script(const EinGraph& graph, const ChunkedGraph& chunked, const ScalarBindings& scalars,
                          const std::map<std::string, std::string>& stored, TableNames& names, KernelTable& kernels,
                          Dialect dialect, const std::optional<Sharing>& sharing) {
  return chunk_script(from_einsum(graph, chunked.cuts), stored, scalars, remarks_of(graph, chunked, sharing), names,
                      kernels, dialect, sharing);
}

Script scatter_outputs(const EinGraph& graph, const ChunkScript& computed, const std::vector<OutputTable>& outputs,
                       Dialect dialect) {
  Script script;
  for (const auto& [name, table, in_chunks] : outputs) {
    const auto vertex = std::find_if(graph.outputs.begin(), graph.outputs.end(),
                                     [&, &tensor = name](VertexId id) { return graph[id].name == tensor; });
    invariant(vertex != graph.outputs.end(), "a table is made of an output");
    const std::string& chunks = computed.tables.at(name);
    const RelationType& type = computed.types.at(name);
    append(script, in_chunks ? keep_chunks_script(name, chunks, type, table, dialect)
                             : scatter_script(name, chunks, type, dimension_names(graph[*vertex]), table, dialect));
  }
  return script;
}

ChunkScript program_script(const EinGraph& graph, const ChunkedGraph& chunked, const ScalarBindings& scalars,
                           const Tables& tables, TableNames& names, KernelTable& kernels) {
  Script script;
  std::map<std::string, std::string> inputs;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const auto table = tables.inputs.find(graph.vertices[v].name);
    if (!is_input(graph.vertices[v]) || table == tables.inputs.end()) continue;
    const std::string made = temporary_table(tables.dialect, names.fresh(graph.vertices[v].name));
    append(script, gather_input(graph, chunked.cuts, v, table->second, made, tables.dialect));
    inputs[graph.vertices[v].name] = made;
  }
  ChunkScript whole = vertex_script(graph, chunked, scalars, inputs, names, kernels, tables.dialect);
  append(script, std::move(whole.statements));
  append(script, scatter_outputs(graph, whole, tables.outputs, tables.dialect));
  std::vector<std::string> made;
  for (const std::string& name : names.given()) made.push_back(temporary_table(tables.dialect, name));
  append(script, drop_script(made));
  whole.statements = std::move(script);
  return whole;
}

}  // namespace einrel::sql
