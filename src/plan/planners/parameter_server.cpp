#include "plan/planners/parameter_server.h"

#include <algorithm>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "plan/planners/schemes.h"
#include "tensor/dtype.h"

namespace einrel {
namespace {

/// Which vertices have it among their labels.
std::vector<bool> having_label(const EinGraph& graph, const std::string& label) {
  std::vector<bool> has_label;
  for (const Vertex& vertex : graph.vertices) {
    const std::vector<std::string> names = is_input(vertex) ? std::vector<std::string>() : label_names(vertex);
    has_label.push_back(std::find(names.begin(), names.end(), label) != names.end());
  }
  return has_label;
}

/// Whether a step changes a state by what all samples of a batch say of it, as training does: its next value is
/// computed of the state itself and of something reduced over the batch that depends on the state, all in floats. The
/// centres of k-means become means of the points that are nearest to them, which are chosen, not differentiated; the
/// vector of a power iteration becomes another one.
bool is_trained(const EinGraph& graph, const State& state, const std::vector<bool>& has_batch) {
  if (!state.next) return false;
  std::vector<bool> depends(graph.vertices.size(), false);
  depends[state.now.index] = true;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (is_input(vertex) || !is_float(vertex.dtype)) continue;
    depends[v] = std::any_of(vertex.inputs.begin(), vertex.inputs.end(),
                             [&](VertexId input) { return static_cast<bool>(depends[input.index]); });
  }
  std::vector<bool> is_update(graph.vertices.size(), false);  // what the next value is computed of, without the batch
  is_update[graph.outputs[*state.next].index] = true;
  bool reads_batch = false;
  for (std::size_t v = graph.vertices.size(); v-- > 0;) {
    if (!is_update[v]) continue;
    reads_batch = reads_batch || (has_batch[v] && depends[v]);
    if (has_batch[v]) continue;
    for (const VertexId input : graph.vertices[v].inputs) is_update[input.index] = true;
  }
  return is_update[state.now.index] && reads_batch;
}

}  // namespace

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
  const std::vector<bool> has_batch = having_label(graph, *batch);
  std::vector<bool> is_layer(graph.vertices.size(), false);
  for (const State& state : graph.steps.states) {
    const auto reads_it = [&](std::size_t v) {
      const std::vector<VertexId>& inputs = graph.vertices[v].inputs;
      return has_batch[v] && std::find(inputs.begin(), inputs.end(), state.now) != inputs.end();
    };
    std::size_t reader = 0;
    while (reader < has_batch.size() && !reads_it(reader)) ++reader;
    if (reader == has_batch.size() || !is_trained(graph, state, has_batch)) continue;
    server.parameters += bytes_of(graph[state.now]);
    // What only adds a bias makes no other activations.
    if (!reduced_labels(graph.vertices[reader]).empty()) is_layer[reader] = true;
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
