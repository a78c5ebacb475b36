#include "export/device_steps.h"

#include <map>
#include <numeric>
#include <utility>

#include "einsum/graph/vertex_facts.h"
#include "plan/routes.h"

namespace einrel {
namespace {

class StepMaker {
 public:
  StepMaker(const EinGraph& graph, const Plan& plan)
      : graph_(graph), mesh_(mesh_of(plan.sites)), transfers_(plan.sites), routes_(graph, plan, transfers_) {
    made_.tensors.resize(graph.vertices.size());
    std::iota(made_.tensors.begin(), made_.tensors.end(), std::size_t{0});
  }

  DeviceSteps make() {
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      const Vertex& vertex = graph_.vertices[v];
      if (is_input(vertex)) continue;
      DeviceStep step{v, std::nullopt, {}, v};
      for (const std::size_t operand : operands_read(vertex))
        step.reads.push_back(brought(vertex.inputs[operand].index, routes_.route_of(v, operand)));
      made_.steps.push_back(std::move(step));
    }
    for (std::size_t s = 0; s < graph_.steps.states.size(); ++s) {
      const State& state = graph_.steps.states[s];
      made_.next.push_back(state.next ? brought(graph_.outputs[*state.next].index, routes_.route_of_state(s))
                                      : state.now.index);
    }
    return std::move(made_);
  }

 private:
  /// The value of a tensor where a route brings it, after those that it is taken from.
  std::size_t brought(std::size_t tensor, std::optional<std::size_t> number) {
    std::vector<std::size_t> missing;
    for (std::optional<std::size_t> at = number; at && brought_.count({tensor, *at}) == 0;
         at = routes_.route(tensor, *at).source)
      missing.push_back(*at);
    for (; !missing.empty(); missing.pop_back()) bring(tensor, missing.back());
    return number ? brought_.at({tensor, *number}) : tensor;
  }

  void bring(std::size_t tensor, std::size_t number) {
    const Route& route = routes_.route(tensor, number);
    const std::size_t from = route.source ? brought_.at({tensor, *route.source}) : tensor;
    DeviceMove move{sharding_of(routes_.source(tensor, number), mesh_), sharding_of(route.need, mesh_)};
    const bool stays = move.have == move.need;
    const std::size_t value = stays ? from : made_.tensors.size();
    brought_[{tensor, number}] = value;
    if (stays) return;
    made_.tensors.push_back(tensor);
    made_.steps.push_back({tensor, std::move(move), {from}, value});
  }

  const EinGraph& graph_;
  std::vector<MeshAxis> mesh_;
  Transfers transfers_;
  Routes routes_;
  DeviceSteps made_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> brought_;
};

}  // namespace

DeviceSteps device_steps(const EinGraph& graph, const Plan& plan) { return StepMaker(graph, plan).make(); }

}  // namespace einrel
