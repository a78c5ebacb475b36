#include "plan/finer_parts.h"

#include <algorithm>
#include <optional>

#include "plan/bound_cost.h"
#include "plan/cost.h"

namespace einrel {
namespace {

std::int64_t part_of(std::int64_t extent, std::int64_t parts) { return (extent + parts - 1) / parts; }

/// What one part reads and makes, and another like that which it makes where these are added up afterwards.
double part_bytes(const EinGraph& graph, const Vertex& vertex, const PartitionVector& parts) {
  const std::int64_t element = std::max(partial_bytes(vertex), static_cast<std::int64_t>(size_of(vertex.dtype)));
  const double results = reduces_onto_result(vertex) ? 1 : 2;
  double bytes = results * chunk_elements(vertex.bound, result_parts(vertex, parts)) * static_cast<double>(element);
  for (const std::size_t operand : operands_read(vertex)) {
    const Vertex& tensor = graph[vertex.inputs[operand]];
    bytes += chunk_elements(tensor.bound, operand_parts(vertex, operand, parts)) *
             static_cast<double>(size_of(tensor.dtype));
  }
  return bytes;
}

/// Of the labels that may be cut into twice as many parts, the one whose parts are longest.
std::optional<std::size_t> longest(const Vertex& vertex, const PartitionVector& parts, const PartitionVector& most,
                                   bool also_reduced) {
  const std::vector<std::size_t> reduced = reduced_labels(vertex);
  std::optional<std::size_t> found;
  for (std::size_t l = 0; l < parts.size(); ++l) {
    const bool is_reduced = std::find(reduced.begin(), reduced.end(), l) != reduced.end();
    if (2 * parts[l] > most[l] || (is_reduced && !also_reduced)) continue;
    if (!found || part_of(most[l], parts[l]) > part_of(most[*found], parts[*found])) found = l;
  }
  return found;
}

/// Inputs lie in chunks no larger than those of their readers, but where these count several labels along a dimension.
void cut_inputs(const EinGraph& graph, const Vertex& reader, Plan& plan, std::size_t v) {
  if (std::holds_alternative<View>(reader.op)) return;
  for (const std::size_t operand : operands_read(reader)) {
    const std::size_t input = reader.inputs[operand].index;
    if (!is_input(graph.vertices[input])) continue;
    const PartitionVector needed = operand_parts(reader, operand, plan.vertices[v].parts);
    PartitionVector& parts = plan.vertices[input].parts;
    for (std::size_t d = 0; d < parts.size(); ++d) parts[d] = std::max(parts[d], needed[d]);
  }
}

}  // namespace

void make_parts_finer(const EinGraph& graph, Plan& plan, std::int64_t most_bytes) {
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (is_input(vertex)) continue;
    const PartitionVector most = most_parts(vertex, graph);
    PartitionVector& parts = plan.vertices[v].parts;
    while (part_bytes(graph, vertex, parts) > static_cast<double>(most_bytes)) {
      std::optional<std::size_t> label = longest(vertex, parts, most, reduces_onto_result(vertex));
      if (!label) label = longest(vertex, parts, most, true);
      if (!label) break;
      parts[*label] *= 2;
    }
    cut_inputs(graph, vertex, plan, v);
  }
}

}  // namespace einrel
