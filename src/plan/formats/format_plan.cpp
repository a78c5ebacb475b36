#include "plan/formats/format_plan.h"

#include "einsum/graph/vertex_facts.h"
#include "plan/formats/format_space.h"

namespace einrel {

std::vector<std::pair<std::size_t, std::size_t>> states_that_change(const EinGraph& graph) {
  std::vector<std::pair<std::size_t, std::size_t>> states;
  for (const State& state : graph.steps.states) {
    if (state.next && graph.outputs[*state.next] != state.now)
      states.emplace_back(state.now.index, graph.outputs[*state.next].index);
  }
  return states;
}

FormatPlan costs_of_formats(const EinGraph& graph, const GraphCuts& cuts, const FormatWeights& weights) {
  FormatPlan plan{cuts, {}, {}, 0, false, std::vector<std::optional<OtherFormat>>(graph.vertices.size())};
  TransformationCosts transformations;
  const auto bring = [&](std::size_t tensor, const TensorFormat& to, VertexFormat& reader) {
    const TensorFormat& from = plan.vertices[tensor].format;
    const FormatCost cost = transformations.of(graph.vertices[tensor], from, to);
    if (cost == FormatCost{}) return;
    plan.cost += cost;
    reader.transformations.push_back({tensor, from, to, cost});
  };
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    const Implementation way = implementation_of(graph, v, cuts.parts[v]);
    VertexFormat own{
        way.result, is_input(vertex) ? gathering_cost(vertex, way.result) : cost_of(graph, vertex, way, weights), {}};
    plan.cost += own.cost;
    for (const NeededFormat& need : way.reads) bring(need.tensor, need.format, own);
    plan.vertices.push_back(std::move(own));
  }
  for (const auto& [now, next] : states_that_change(graph)) bring(next, plan.vertices[now].format, plan.vertices[now]);
  plan.seconds = seconds_of(plan.cost, weights);
  return plan;
}

FormatPlan plan_formats(const EinGraph& graph, const FormatRequest& request) {
  check_tensors(graph, request.given);
  const formats::Space all(graph, request);
  formats::Space space = all;  // the next best format of a tensor may be one that no least plan has
  space.drop_dominated();
  bool is_least = true;
  formats::Space::Choice choice = space.least(request.most_entries, is_least);
  if (!is_least) space.improve(choice);
  FormatPlan plan = costs_of_formats(graph, space.cuts(choice), request.weights);
  plan.is_least = is_least && space.has_all_ways();
  const formats::Space::Choice same = all.choice_of(plan.cuts);
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) plan.others[v] = all.other_format(same, v);
  return plan;
}

}  // namespace einrel
