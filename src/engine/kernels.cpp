#include "engine/kernels.h"

#include <algorithm>

#include "einsum/vertex_facts.h"
#include "kernel/evaluate.h"
#include "kernel/fusion/products.h"

namespace einrel {
namespace {

/// Of a product that is computed slab by slab: by what, with seconds of all slabs.
void name_slab_kernel(Choice choice, double slabs, VertexKernel& kernel) {
  for (Considered& considered : choice.considered) {
    if (auto* const seconds = std::get_if<double>(&considered.outcome)) *seconds *= slabs;
  }
  kernel.kernel = choice.kernel;
  kernel.path = choice.offer.path + ", slab by slab";
  kernel.seconds = choice.offer.seconds * slabs;
  kernel.own_bytes = choice.offer.own_bytes + choice.offer.shared_bytes;
  kernel.shared_bytes = 0;
  kernel.considered = std::move(choice.considered);
}

/// Says of the members of a fusion that they run together.
void add_fusion(const Fusion& fusion, const EinGraph& graph, const MemoryPlan& memory, const ScalarBindings& scalars,
                std::vector<std::optional<VertexKernel>>& kernels) {
  std::vector<ArrayLayout> operands;
  for (const std::size_t operand : fusion.operands) operands.push_back(memory.layouts[operand]);
  FusionKernels all = kernels_of(fusion, operands, scalars);
  const std::vector<Vertex>& vertices = fusion.program.vertices;
  std::vector<std::string> softmaxes;
  for (const std::size_t quotient : all.row_by_row) softmaxes.push_back(vertices[quotient].name);
  for (const std::size_t member : fusion.members) {
    if (!kernels[member]) continue;
    for (const std::size_t other : fusion.members) {
      if (other != member) kernels[member]->together.push_back(graph.vertices[other].name);
    }
    const std::string& name = graph.vertices[member].name;
    kernels[member]->row_by_row = std::find(softmaxes.begin(), softmaxes.end(), name) != softmaxes.end();
    for (SlabKernel& slab : all.kernels) {
      const Vertex& vertex = vertices[slab.vertex];
      if (vertex.name != name || is_light(fusion.program, vertex)) continue;
      name_slab_kernel(std::move(slab.choice), all.slabs, *kernels[member]);
      break;
    }
  }
}

}  // namespace

std::vector<std::optional<VertexKernel>> chosen_kernels(const Compiled& compiled, const LayoutBindings& layouts) {
  const EinGraph& graph = compiled.graph;
  const MemoryPlan memory = plan_memory(compiled, input_layouts(graph, layouts));
  const ScalarBindings scalars = some_scalars(graph);
  std::vector<std::optional<VertexKernel>> kernels(graph.vertices.size());
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    const bool is_shared = memory.owners[v] != v;
    if (is_input(vertex) || is_shared) continue;
    std::vector<ArrayLayout> operands;
    for (const VertexId input : vertex.inputs) operands.push_back(memory.layouts[input.index]);
    std::optional<Choice> choice = choice_of(vertex, operands, scalars);
    if (!choice) continue;
    kernels[v] = {std::string(choice->kernel),
                  choice->offer.path,
                  choice->offer.seconds,
                  choice->offer.own_bytes,
                  choice->offer.shared_bytes,
                  std::move(choice->considered),
                  {},
                  false};
  }
  for (const Fusion& fusion : compiled.fusions) add_fusion(fusion, graph, memory, scalars, kernels);
  return kernels;
}

}  // namespace einrel
