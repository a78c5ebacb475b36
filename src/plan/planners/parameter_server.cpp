#include "plan/planners/parameter_server.h"

#include <algorithm>

#include "einsum/vertex_facts.h"
#include "plan/planners/schemes.h"

namespace einrel {
double ParameterServer::moved(std::int64_t groups, std::int64_t devices) const {
  const auto to_and_from = [](double bytes, std::int64_t all) {
    return all == 1 ? 0.0 : 2 * bytes * static_cast<double>(all);
  };
  // Of its share of the activations each of the groups exchanges as much.
  return to_and_from(parameters, groups) + to_and_from(activations, devices);
}

std::optional<ParameterServer> parameter_server(const EinGraph& graph, const PlanRequest& request) {
  const std::optional<std::string> batch = batch_label(graph, request);
  if (!batch) return std::nullopt;
  ParameterServer server;
  std::vector<bool> is_layer(graph.vertices.size(), false);
  for (const State& state : graph.steps.states) {
    const auto reader = std::find_if(graph.vertices.begin(), graph.vertices.end(), [&](const Vertex& vertex) {
      if (std::find(vertex.inputs.begin(), vertex.inputs.end(), state.now) == vertex.inputs.end()) return false;
      const std::vector<std::string> names = label_names(vertex);
      return std::find(names.begin(), names.end(), *batch) != names.end();
    });
    if (!state.next || reader == graph.vertices.end()) continue;
    server.parameters += bytes_of(graph[state.now]);
    // What only adds a bias makes no other activations.
    if (!reduced_labels(*reader).empty()) is_layer[static_cast<std::size_t>(reader - graph.vertices.begin())] = true;
  }
  if (server.parameters == 0) return std::nullopt;
  for (std::size_t v = 0; v < is_layer.size(); ++v) {
    if (is_layer[v]) server.activations += bytes_of(graph.vertices[v]);
  }
  return server;
}

std::optional<std::int64_t> best_groups(const ParameterServer& server, std::int64_t sites) {
  std::optional<std::int64_t> best;
  for (const std::int64_t groups : divisors_of(sites)) {
    if (groups == 1 || groups == sites) continue;
    if (!best || server.moved(groups, sites / groups) < server.moved(*best, sites / *best)) best = groups;
  }
  return best;
}

}  // namespace einrel
