#include "engine/prepare.h"

#include <fmt/format.h>

#include "base/error.h"
#include "einsum/vertex_facts.h"
#include "engine/memory.h"
#include "engine/memory_plan.h"
#include "kernel/evaluate.h"

namespace einrel {
namespace {

/// Where the inputs stand; refuses layouts of other inputs.
std::vector<std::size_t> places_of(const EinGraph& graph, const std::vector<ArrayLayout>& inputs) {
  std::vector<std::size_t> places;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (is_input(graph.vertices[v])) places.push_back(v);
  }
  if (inputs.size() != places.size()) {
    throw UserError(fmt::format("the program has {} inputs, but {} are given", places.size(), inputs.size()));
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Vertex& vertex = graph.vertices[places[i]];
    if (inputs[i].dtype == vertex.dtype && inputs[i].shape == vertex.bound) continue;
    throw UserError(fmt::format("input '{}' is {} {}, but {} {} is given", vertex.name, name_of(vertex.dtype),
                                to_string(vertex.bound), name_of(inputs[i].dtype), to_string(inputs[i].shape)));
  }
  return places;
}

class Preparing {
 public:
  Preparing(const Compiled& compiled, const MemoryPlan& memory, const ScalarBindings& scalars)
      : graph_(compiled.graph), memory_(memory), scalars_(scalars), fusion_of_(graph_.vertices.size(), nullptr) {
    for (const Fusion& fusion : compiled.fusions) {
      for (const std::size_t member : fusion.members) fusion_of_[member] = &fusion;
    }
  }

  std::vector<PreparedStep> steps() {
    std::vector<PreparedStep> steps;
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      const bool is_shared = memory_.owners[v] != v;
      if (!is_input(graph_.vertices[v]) && !is_shared && memory_.computed_at[v] == v) steps.push_back(step(v));
      // What a shared view reads last has been of use for the last time before.
      if (!steps.empty()) {
        steps.back().freed.insert(steps.back().freed.end(), memory_.freed[v].begin(), memory_.freed[v].end());
      }
    }
    return steps;
  }

 private:
  PreparedStep step(std::size_t v) const {
    PreparedStep step{v, {}, {}, {}, {}};
    std::vector<ArrayLayout> layouts;
    const auto add_operand = [&](std::size_t operand) {
      layouts.push_back(memory_.layouts[operand]);
      step.operands.push_back(memory_.owners[operand]);
    };
    if (const Fusion* const fusion = fusion_of_[v]) {
      for (const std::size_t operand : fusion->operands) add_operand(operand);
      for (const std::size_t result : fusion->results) step.results.push_back({result, memory_.layouts[result]});
      step.kernel = prepare_fusion(*fusion, layouts, scalars_);
    } else {
      for (const VertexId operand : graph_.vertices[v].inputs) add_operand(operand.index);
      step.results.push_back({v, memory_.layouts[v]});
      step.kernel = prepare(graph_.vertices[v], layouts, scalars_);
    }
    return step;
  }

  const EinGraph& graph_;
  const MemoryPlan& memory_;
  const ScalarBindings& scalars_;
  std::vector<const Fusion*> fusion_of_;  // by vertex
};

}  // namespace

PreparedProgram prepare(const Compiled& compiled, std::vector<ArrayLayout> inputs, const ScalarBindings& scalars) {
  const EinGraph& graph = compiled.graph;
  PreparedProgram program;
  program.input_places = places_of(graph, inputs);
  program.inputs = std::move(inputs);
  program.scalars = scalars;
  program.vertex_count = graph.vertices.size();
  const MemoryPlan memory = plan_memory(compiled, program.inputs);
  program.peak_bytes = forecast_memory(graph, memory).peak_bytes;
  program.steps = Preparing(compiled, memory, scalars).steps();
  for (const VertexId output : graph.outputs) {
    program.outputs.push_back({memory.owners[output.index], memory.layouts[output.index]});
  }
  return program;
}

}  // namespace einrel
