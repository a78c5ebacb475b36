#include "engine/memory_plan.h"

#include <algorithm>
#include <optional>

#include "einsum/vertex_facts.h"
#include "kernel/view.h"

namespace einrel {
namespace {

/// Layouts and owners.
void place_tensors(const EinGraph& graph, const std::vector<ArrayLayout>& inputs, MemoryPlan& plan) {
  std::size_t next_input = 0;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    plan.owners.push_back(v);
    plan.layouts.push_back(is_input(vertex) ? inputs.at(next_input++) : row_major_layout(vertex.dtype, vertex.bound));
    const View* const view = view_of(vertex);
    if (view == nullptr) continue;
    const std::size_t operand = vertex.inputs[0].index;
    if (std::optional<Strides> shared = view_strides(*view, plan.layouts[operand].strides)) {
      plan.owners[v] = plan.owners[operand];
      plan.layouts[v].strides = std::move(*shared);
      plan.layouts[v].aligned = plan.layouts[operand].aligned;
    }
  }
}

void place_fusions(const Compiled& compiled, MemoryPlan& plan) {
  const std::size_t count = compiled.graph.vertices.size();
  plan.inside.assign(count, false);
  for (std::size_t v = 0; v < count; ++v) plan.computed_at.push_back(v);
  for (const Fusion& fusion : compiled.fusions) {
    for (const std::size_t member : fusion.members) {
      plan.computed_at[member] = fusion.members.back();
      plan.inside[member] = true;
    }
    for (const std::size_t result : fusion.results) plan.inside[result] = false;
  }
}

}  // namespace

std::vector<ArrayLayout> input_layouts(const EinGraph& graph, const LayoutBindings& given) {
  std::vector<ArrayLayout> layouts;
  for (const Vertex& vertex : graph.vertices) {
    if (!is_input(vertex)) continue;
    layouts.push_back(row_major_layout(vertex.dtype, vertex.bound));
    const auto found = given.find(vertex.name);
    if (found != given.end()) layouts.back().strides = found->second;
  }
  return layouts;
}

MemoryPlan plan_memory(const Compiled& compiled, const std::vector<ArrayLayout>& inputs) {
  const EinGraph& graph = compiled.graph;
  const std::size_t count = graph.vertices.size();
  MemoryPlan plan;
  place_tensors(graph, inputs, plan);
  place_fusions(compiled, plan);
  std::vector<std::size_t> last_use(plan.computed_at);
  for (std::size_t v = 0; v < count; ++v) {
    for (const VertexId input : graph.vertices[v].inputs) {
      std::size_t& last = last_use[plan.owners[input.index]];
      last = std::max(last, plan.computed_at[v]);
    }
  }
  for (const VertexId output : graph.outputs) last_use[plan.owners[output.index]] = count;
  plan.made.resize(count);
  plan.freed.resize(count);
  for (std::size_t v = 0; v < count; ++v) {
    if (plan.owners[v] != v || plan.inside[v]) continue;
    if (!is_input(graph.vertices[v])) plan.made[plan.computed_at[v]].push_back(v);
    if (last_use[v] < count) plan.freed[last_use[v]].push_back(v);
  }
  return plan;
}

}  // namespace einrel
