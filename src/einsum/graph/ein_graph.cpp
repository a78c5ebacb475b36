#include "einsum/graph/ein_graph.h"

#include <algorithm>
#include <cmath>

namespace einrel {

bool is_exact(double value, DType integer) {
  const double limit = integer == DType::i32 ? 0x1p31 : 0x1p63;
  return value == std::floor(value) && value >= -limit && value < limit;
}

std::string initial_name(const std::string& state) { return "initial_" + state; }
std::string next_name(const std::string& state) { return "next_" + state; }

std::vector<VertexId> program_outputs(const EinGraph& graph) {
  return {graph.outputs.begin(), graph.outputs.end() - static_cast<std::ptrdiff_t>(graph.steps.feedback)};
}

bool is_state(const EinGraph& graph, std::size_t vertex) {
  return std::any_of(graph.steps.states.begin(), graph.steps.states.end(),
                     [&](const State& state) { return state.now.index == vertex; });
}

void map_labels(Access& access, const Renumbering& to) {
  for (Index& index : access.indices) {
    for (IndexTerm& term : index.terms) term.label = to(term.label);
  }
}

void copy_interface(const EinGraph& from, const std::vector<VertexId>& moved, EinGraph& to) {
  to.scalars = from.scalars;
  to.complex = from.complex;
  to.steps = from.steps;
  for (State& state : to.steps.states) state.now = moved[state.now.index];
  for (const VertexId output : from.outputs) to.outputs.push_back(moved[output.index]);
}

EinGraph needed_for_outputs(const EinGraph& graph) {
  std::vector<bool> needed(graph.vertices.size(), false);
  for (const VertexId output : graph.outputs) needed[output.index] = true;
  for (const State& state : graph.steps.states) needed[state.now.index] = true;  // handed on, whoever reads it
  for (std::size_t v = graph.vertices.size(); v-- > 0;) {
    if (!needed[v]) continue;
    for (const VertexId input : graph.vertices[v].inputs) needed[input.index] = true;
  }
  EinGraph result;
  std::vector<VertexId> moved(graph.vertices.size());
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (!needed[v]) continue;
    moved[v] = VertexId{result.vertices.size()};
    Vertex vertex = graph.vertices[v];
    for (VertexId& input : vertex.inputs) input = moved[input.index];
    result.vertices.push_back(std::move(vertex));
  }
  copy_interface(graph, moved, result);
  return result;
}

}  // namespace einrel
