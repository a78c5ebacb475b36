#include "einsum/ein_graph.h"

#include <cmath>

#include "einsum/check.h"

namespace einrel {

bool is_exact(double value, DType integer) {
  const double limit = integer == DType::i32 ? 0x1p31 : 0x1p63;
  return value == std::floor(value) && value >= -limit && value < limit;
}

EinGraph needed_for_outputs(const EinGraph& graph) {
  std::vector<bool> needed(graph.vertices.size(), false);
  for (const VertexId output : graph.outputs) needed[output.index] = true;
  for (std::size_t v = graph.vertices.size(); v-- > 0;) {
    if (!needed[v]) continue;
    for (const VertexId input : graph.vertices[v].inputs) needed[input.index] = true;
  }
  EinGraph result;
  result.scalars = graph.scalars;
  std::vector<VertexId> moved(graph.vertices.size());
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (!needed[v]) continue;
    moved[v] = VertexId{result.vertices.size()};
    Vertex vertex = graph.vertices[v];
    for (VertexId& input : vertex.inputs) input = moved[input.index];
    result.vertices.push_back(std::move(vertex));
  }
  for (const VertexId output : graph.outputs) result.outputs.push_back(moved[output.index]);
  return result;
}

}  // namespace einrel
