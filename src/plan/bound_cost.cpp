#include "plan/bound_cost.h"

#include <algorithm>

namespace einrel {
namespace {

double chunk_extent(Extent extent, std::int64_t parts) {
  const std::int64_t largest = (extent.value() + parts - 1) / parts;
  return static_cast<double>(largest);
}

double chunk_elements(const Shape& bound, const PartitionVector& parts) {
  double elements = 1;
  for (std::size_t d = 0; d < bound.size(); ++d) elements *= chunk_extent(bound[d], parts[d]);
  return elements;
}

double elements_of(const Shape& bound) { return chunk_elements(bound, PartitionVector(bound.size(), 1)); }

double product_of(const PartitionVector& parts) {
  double product = 1;
  for (const std::int64_t count : parts) product *= static_cast<double>(count);
  return product;
}

}  // namespace

double bound_of_vertex(const Vertex& vertex, const EinGraph& graph, const PartitionVector& parts) {
  if (std::holds_alternative<Input>(vertex.op)) return 0;
  const double calls = product_of(parts);
  double cost = 0;
  for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
    cost += calls * chunk_elements(graph[vertex.inputs[o]].bound, operand_parts(vertex, o, parts));
  }
  const PartitionVector of_result = result_parts(vertex, parts);
  const double aggregated = calls / product_of(of_result);
  return cost + calls / aggregated * (aggregated - 1) * chunk_elements(vertex.bound, of_result);
}

double bound_of_repartition(const Shape& bound, const PartitionVector& from, const PartitionVector& to) {
  if (from == to) return 0;
  const double all = elements_of(bound);
  const double produced = chunk_elements(bound, from);
  const double consumed = chunk_elements(bound, to);
  double shared = 1;
  for (std::size_t d = 0; d < bound.size(); ++d) {
    shared *= std::min(chunk_extent(bound[d], from[d]), chunk_extent(bound[d], to[d]));
  }
  if (shared == 0) return 0;
  const double cutting = produced == shared ? 0 : all / shared * produced;
  return all / consumed * (consumed / shared - 1) * consumed + cutting;
}

double bound_of_plan(const EinGraph& graph, const std::vector<PartitionVector>& parts) {
  double cost = 0;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    cost += bound_of_vertex(vertex, graph, parts[v]);
    for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
      const Vertex& producer = graph[vertex.inputs[o]];
      if (std::holds_alternative<Input>(producer.op)) continue;
      cost += bound_of_repartition(producer.bound, result_parts(producer, parts[vertex.inputs[o].index]),
                                   operand_parts(vertex, o, parts[v]));
    }
  }
  return cost;
}

}  // namespace einrel
