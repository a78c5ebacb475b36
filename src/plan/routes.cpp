#include "plan/routes.h"

#include <algorithm>
#include <numeric>

#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

/// What a site receives at most, and all of them.
struct Received {
  std::int64_t most = 0;
  std::int64_t total = 0;
};
Received received(const std::vector<std::int64_t>& by_site) {
  return {*std::max_element(by_site.begin(), by_site.end()),
          std::accumulate(by_site.begin(), by_site.end(), std::int64_t{0})};
}

/// Such vertices read nothing.
bool computes_nothing(const Vertex& vertex) {
  const Shape extents = label_extents(vertex);
  return std::find(extents.begin(), extents.end(), Extent(0)) != extents.end();
}

}  // namespace

Routes::Routes(const EinGraph& graph, const Plan& plan, Transfers& transfers) : of_tensor_(graph.vertices.size()) {
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    stored_.push_back(result_layout(vertex, plan.vertices[v]));
    std::vector<std::size_t> before;  // routes of the operands' tensors that other vertices need
    for (const VertexId input : vertex.inputs) before.push_back(of_tensor_[input.index].size());
    std::vector<std::optional<std::size_t>>& routes = of_operand_.emplace_back(vertex.inputs.size());
    if (computes_nothing(vertex)) continue;
    for (const std::size_t operand : operands_read(vertex)) {
      const std::size_t tensor = vertex.inputs[operand].index;
      routes[operand] = find_or_add(tensor, needed_layout(vertex, operand, plan.vertices[v]),
                                    graph.vertices[tensor].bound, before[operand], transfers);
    }
  }
  for (const State& state : graph.steps.states) {
    std::optional<std::size_t>& route = of_state_.emplace_back();
    if (!state.next) continue;
    const std::size_t next = graph.outputs[*state.next].index;
    route = find_or_add(next, stored_[state.now.index], graph.vertices[next].bound, of_tensor_[next].size(), transfers);
  }
}

std::optional<std::size_t> Routes::find_or_add(std::size_t tensor, Layout need, const Shape& bound, std::size_t sources,
                                               Transfers& transfers) {
  if (need == stored_[tensor]) return std::nullopt;
  std::vector<Route>& known = of_tensor_[tensor];
  const auto same = std::find_if(known.begin(), known.end(), [&](const Route& route) { return route.need == need; });
  const auto number = static_cast<std::size_t>(same - known.begin());
  if (same == known.end()) {
    const auto source = best_source(tensor, need, bound, sources, transfers);
    known.push_back({std::move(need), source});
  }
  return number;
}

std::optional<std::size_t> Routes::best_source(std::size_t tensor, const Layout& need, const Shape& bound,
                                               std::size_t sources, Transfers& transfers) const {
  std::optional<std::size_t> best;
  if (sources == 0) return best;
  Received least = received(transfers.received(stored_[tensor], need, bound));
  for (std::size_t r = 0; r < sources; ++r) {
    const Received other = received(transfers.received(of_tensor_[tensor][r].need, need, bound));
    if (other.total >= least.total || other.most > least.most) continue;
    least = other;
    best = r;
  }
  return best;
}

std::optional<std::size_t> Routes::route_of(std::size_t vertex, std::size_t operand) const {
  return of_operand_[vertex][operand];
}

const Layout& Routes::source(std::size_t tensor, std::size_t number) const {
  const std::optional<std::size_t> from = of_tensor_[tensor][number].source;
  return from ? of_tensor_[tensor][*from].need : stored_[tensor];
}

}  // namespace einrel
