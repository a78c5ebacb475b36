#include "plan/routes.h"

#include <algorithm>

#include "einsum/graph/vertex_facts.h"

namespace einrel {
std::optional<std::size_t> TensorRoutes::find_or_add(Layout need, const Shape& bound, Transfers& transfers) {
  if (need == stored_) return std::nullopt;
  const auto same =
      std::find_if(routes_.begin(), routes_.end(), [&](const Route& route) { return route.need == need; });
  const auto number = static_cast<std::size_t>(same - routes_.begin());
  if (same == routes_.end()) {
    const auto source = best_source(need, bound, transfers);
    routes_.push_back({std::move(need), source});
  }
  return number;
}

std::optional<std::size_t> TensorRoutes::best_source(const Layout& need, const Shape& bound,
                                                     Transfers& transfers) const {
  std::optional<std::size_t> best;
  if (sources_ == 0) return best;
  ReceivedSums least = transfers.sums(stored_, need, bound);
  for (std::size_t r = 0; r < sources_; ++r) {
    if (has_windows(routes_[r].need)) continue;  // its chunks overlap
    const ReceivedSums other = transfers.sums(routes_[r].need, need, bound);
    if (other.all >= least.all || other.most > least.most) continue;
    least = other;
    best = r;
  }
  return best;
}

const Layout& TensorRoutes::source(std::size_t number) const {
  const std::optional<std::size_t> from = routes_[number].source;
  return from ? routes_[*from].need : stored_;
}

bool computes_nothing(const Vertex& vertex) {
  const Shape extents = label_extents(vertex);
  return std::find(extents.begin(), extents.end(), Extent(0)) != extents.end();
}

Routes::Routes(const EinGraph& graph, const Plan& plan, Transfers& transfers) {
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    of_tensor_.emplace_back(result_layout(vertex, plan.vertices[v]));
    for (const VertexId input : vertex.inputs) of_tensor_[input.index].next_reader();
    std::vector<std::optional<std::size_t>>& routes = of_operand_.emplace_back(vertex.inputs.size());
    if (computes_nothing(vertex)) continue;
    for (const std::size_t operand : operands_read(vertex)) {
      const std::size_t tensor = vertex.inputs[operand].index;
      const Shape& bound = graph.vertices[tensor].bound;
      routes[operand] =
          of_tensor_[tensor].find_or_add(needed_layout(vertex, operand, bound, plan.vertices[v]), bound, transfers);
    }
  }
  for (const State& state : graph.steps.states) {
    std::optional<std::size_t>& route = of_state_.emplace_back();
    if (!state.next) continue;
    const std::size_t next = graph.outputs[*state.next].index;
    of_tensor_[next].next_reader();
    route = of_tensor_[next].find_or_add(of_tensor_[state.now.index].stored(), graph.vertices[next].bound, transfers);
  }
}

}  // namespace einrel
