#include "plan/cost/bound_cost.h"

#include <algorithm>

#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

double chunk_extent(Extent extent, std::int64_t parts) {
  const std::int64_t largest = (extent.value() + parts - 1) / parts;
  return static_cast<double>(largest);
}

/// Of the largest chunk.
struct ChunkSize {
  std::vector<double> extents;
  double elements = 1;
};

std::vector<ChunkSize> chunk_sizes(const Shape& bound, const std::vector<PartitionVector>& parts) {
  std::vector<ChunkSize> sizes(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::size_t d = 0; d < bound.size(); ++d) {
      sizes[i].extents.push_back(chunk_extent(bound[d], parts[i][d]));
      sizes[i].elements *= sizes[i].extents.back();
    }
  }
  return sizes;
}

double product_of(const PartitionVector& parts) {
  double product = 1;
  for (const std::int64_t count : parts) product *= static_cast<double>(count);
  return product;
}

}  // namespace

double chunk_elements(const Shape& bound, const PartitionVector& parts) {
  double elements = 1;
  for (std::size_t d = 0; d < bound.size(); ++d) elements *= chunk_extent(bound[d], parts[d]);
  return elements;
}

double bound_of_vertex(const Vertex& vertex, const EinGraph& graph, const PartitionVector& parts) {
  if (is_input(vertex)) return 0;
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
  return bounds_of_repartitions(bound, {from}, {to}).front();
}

std::vector<double> bounds_of_repartitions(const Shape& bound, const std::vector<PartitionVector>& from,
                                           const std::vector<PartitionVector>& to) {
  const auto all = static_cast<double>(element_count(bound));
  const std::vector<ChunkSize> produced = chunk_sizes(bound, from);
  const std::vector<ChunkSize> consumed = chunk_sizes(bound, to);
  std::vector<double> costs;
  costs.reserve(from.size() * to.size());
  for (std::size_t f = 0; f < from.size(); ++f) {
    for (std::size_t t = 0; t < to.size(); ++t) {
      double shared = 1;
      for (std::size_t d = 0; d < bound.size(); ++d) {
        shared *= std::min(produced[f].extents[d], consumed[t].extents[d]);
      }
      if (shared == 0 || from[f] == to[t]) {
        costs.push_back(0);
        continue;
      }
      const double cutting = produced[f].elements == shared ? 0 : all / shared * produced[f].elements;
      costs.push_back(all / consumed[t].elements * (consumed[t].elements / shared - 1) * consumed[t].elements +
                      cutting);
    }
  }
  return costs;
}

double bound_of_plan(const EinGraph& graph, const std::vector<PartitionVector>& parts) {
  double cost = 0;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    cost += bound_of_vertex(vertex, graph, parts[v]);
    for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
      const Vertex& producer = graph[vertex.inputs[o]];
      if (is_input(producer)) continue;
      cost += bound_of_repartition(producer.bound, result_parts(producer, parts[vertex.inputs[o].index]),
                                   operand_parts(vertex, o, parts[v]));
    }
  }
  return cost;
}

}  // namespace einrel
