#include "einsum/ein_graph.h"

#include <algorithm>
#include <cmath>

#include "einsum/check.h"

namespace einrel {

bool is_exact(double value, DType integer) {
  const double limit = integer == DType::i32 ? 0x1p31 : 0x1p63;
  return value == std::floor(value) && value >= -limit && value < limit;
}

double flops(const Vertex& vertex) {
  const auto* einsum = std::get_if<EinSum>(&vertex.op);
  if (einsum == nullptr) return 0;
  const auto computing = std::count_if(einsum->body.steps.begin(), einsum->body.steps.end(),
                                       [](const ScalarStep& step) { return arity(step) > 0; });
  double bindings = 1;
  for (const Label& label : einsum->labels) bindings *= static_cast<double>(label.extent.value());
  return bindings * static_cast<double>(computing + (einsum->reducer ? 1 : 0));
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
