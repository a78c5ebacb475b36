#include "plan/staying_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

/// For how many steps it is the same.
struct StepsOf {
  std::int64_t operator()(const Input& input) const { return input.steps; }
  template <class Computed>
  std::int64_t operator()(const Computed& /*vertex*/) const {
    return 1;
  }
};
std::int64_t steps_of(const Vertex& tensor) { return std::visit(StepsOf{}, tensor.op); }

[[noreturn]] void refuse(const std::string& name, const EinGraph& graph) {
  std::vector<std::string> known;
  for (const Vertex& vertex : graph.vertices) {
    if (is_input(vertex)) known.push_back(vertex.name);
  }
  const std::string near = did_you_mean(name, known);
  throw UserError(
      fmt::format("'{0}' cannot be new in each step: the program has no input '{0}'{1}", printable(name),
                  near.empty() ? "\n  help: name an input that the program's outputs are computed from" : "; " + near));
}

}  // namespace

EinGraph with_staying_inputs(EinGraph graph, std::int64_t steps, const std::set<std::string>& fed) {
  std::set<std::string> left = fed;
  std::set<std::size_t> changing;
  for (const State& state : graph.steps.states) {
    if (state.next) changing.insert(state.now.index);
  }
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (!is_input(graph.vertices[v])) continue;
    const bool is_fed = left.erase(graph.vertices[v].name) != 0;
    std::get<Input>(graph.vertices[v].op).steps = is_fed || changing.contains(v) ? 1 : steps;
  }
  if (!left.empty()) refuse(*left.begin(), graph);
  return graph;
}

bool stays(const Vertex& tensor) { return steps_of(tensor) > 1; }

double share_of_step(const Vertex& tensor) { return 1 / static_cast<double>(steps_of(tensor)); }

std::int64_t steps_of(const EinGraph& graph) {
  std::int64_t steps = 1;
  for (const Vertex& vertex : graph.vertices) steps = std::max(steps, steps_of(vertex));
  return steps;
}

}  // namespace einrel
