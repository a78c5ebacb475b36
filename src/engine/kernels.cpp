#include "engine/kernels.h"

#include <map>
#include <set>

#include "einsum/vertex_facts.h"
#include "exec/chunk_kernel.h"
#include "kernel/evaluate.h"
#include "kernel/fusion/products.h"
#include "kernel/view.h"

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

/// How all tensors lie: inputs as they are given, views in what they read where they can, others row-major.
std::vector<ArrayLayout> layouts_of_tensors(const EinGraph& graph, const LayoutBindings& given) {
  std::vector<ArrayLayout> layouts;
  for (const Vertex& vertex : graph.vertices) {
    ArrayLayout& layout = layouts.emplace_back(row_major_layout(vertex.dtype, vertex.bound));
    const auto found = given.find(vertex.name);
    if (is_input(vertex) && found != given.end()) layout.strides = found->second;
    if (const View* const view = view_of(vertex)) {
      const Strides& operand = layouts[vertex.inputs.front().index].strides;
      layout.strides = view_strides(*view, operand).value_or(layout.strides);
    }
  }
  return layouts;
}

bool lies_in_operand(const Vertex& vertex, const std::vector<ArrayLayout>& layouts) {
  const View* const view = view_of(vertex);
  return view != nullptr && view_strides(*view, layouts[vertex.inputs.front().index].strides).has_value();
}

/// Those that some task calls a kernel for: no views that their readers see through.
std::set<std::size_t> vertices_with_tasks(const PlannedTasks& whole) {
  std::set<std::size_t> vertices;
  for (const Task& task : whole.graph.tasks) {
    if (!std::holds_alternative<CallKernel>(task.op)) continue;
    const std::optional<std::size_t> vertex = whole.vertices[task.node.index];
    if (vertex) vertices.insert(*vertex);
  }
  return vertices;
}

/// Says of vertices whose kernels a task calls together that they run so.
class TogetherKernels {
 public:
  TogetherKernels(const Compiled& compiled, const PlannedTasks& whole, const std::vector<ArrayLayout>& layouts,
                  std::vector<std::optional<VertexKernel>>& kernels)
      : graph_(compiled.graph), whole_(whole), scalars_(some_scalars(compiled.graph)), kernels_(kernels) {
    std::map<std::string, const ArrayLayout*> inputs;
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) inputs.emplace(graph_.vertices[v].name, &layouts[v]);
    for (const Task& task : whole.graph.tasks) {
      const auto* const read = std::get_if<ReadInput>(&task.op);
      if (read != nullptr) inputs_.emplace(task.makes.front(), inputs.at(whole.graph.inputs[read->input].name));
    }
  }

  void add(const Task& task) {
    const auto* const call = std::get_if<CallKernel>(&task.op);
    if (call == nullptr || whole_.graph.kernels[call->kernel].nodes.empty()) return;
    std::set<std::size_t> members;
    for (const IaId node : nodes_of(whole_.graph, task)) {
      if (const auto vertex = whole_.vertices[node.index]) members.insert(*vertex);
    }
    for (const std::size_t member : members) {
      for (const std::size_t other : members) {
        if (other != member && kernels_[member]) kernels_[member]->together.push_back(graph_.vertices[other].name);
      }
    }
    add_slabs(whole_.graph.kernels[call->kernel], arguments_of(task, *call));
  }

 private:
  std::vector<ArrayLayout> arguments_of(const Task& task, const CallKernel& call) const {
    std::vector<ArrayLayout> arguments;
    for (const ArrayId read : task.reads) {
      const TaskArray& array = whole_.graph[read];
      const auto input = inputs_.find(read);
      arguments.push_back(input != inputs_.end() ? *input->second : row_major_layout(array.dtype, array.bound));
    }
    arguments.resize(arguments.size() + call.numbers.size(), row_major_layout(DType::i64, {}));
    return arguments;
  }

  void add_slabs(const TaskKernel& kernel, const std::vector<ArrayLayout>& arguments) {
    std::map<std::string, std::size_t> vertices;
    std::vector<std::string> names;
    for (const IaId node : kernel.nodes) {
      const std::optional<std::size_t> vertex = whole_.vertices[node.index];
      names.push_back(vertex ? graph_.vertices[*vertex].name : "");
      if (vertex) vertices[names.back()] = *vertex;
    }
    const ChunkProgram program = chunk_program(kernel, arguments, false, names);
    for (const Fusion& fusion : program.fusions) {
      std::vector<ArrayLayout> operands;
      for (const std::size_t operand : fusion.operands) operands.push_back(program.layouts[operand]);
      FusionKernels all = kernels_of(fusion, operands, scalars_);
      const auto kernel_of = [&](const Vertex& vertex) -> VertexKernel* {
        const auto found = vertices.find(vertex.name);
        return found == vertices.end() || !kernels_[found->second] ? nullptr : &*kernels_[found->second];
      };
      for (const std::size_t quotient : all.row_by_row) {
        if (VertexKernel* const softmax = kernel_of(fusion.program.vertices[quotient])) softmax->row_by_row = true;
      }
      for (SlabKernel& slab : all.kernels) {
        const Vertex& vertex = fusion.program.vertices[slab.vertex];
        VertexKernel* const own = is_light(fusion.program, vertex) ? nullptr : kernel_of(vertex);
        if (own != nullptr) name_slab_kernel(std::move(slab.choice), all.slabs, *own);
      }
    }
  }

  const EinGraph& graph_;
  const PlannedTasks& whole_;
  ScalarBindings scalars_;
  std::vector<std::optional<VertexKernel>>& kernels_;
  std::map<ArrayId, const ArrayLayout*> inputs_;
};

}  // namespace

std::vector<std::optional<VertexKernel>> chosen_kernels(const Compiled& compiled, const PlannedTasks& whole,
                                                        const LayoutBindings& layouts) {
  const EinGraph& graph = compiled.graph;
  const std::vector<ArrayLayout> tensors = layouts_of_tensors(graph, layouts);
  const ScalarBindings scalars = some_scalars(graph);
  const std::set<std::size_t> made = vertices_with_tasks(whole);
  std::vector<std::optional<VertexKernel>> kernels(graph.vertices.size());
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (is_input(vertex) || (lies_in_operand(vertex, tensors) && made.count(v) == 0)) continue;
    std::vector<ArrayLayout> operands;
    for (const VertexId input : vertex.inputs) operands.push_back(tensors[input.index]);
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
  TogetherKernels together(compiled, whole, tensors, kernels);
  for (const Task& task : whole.graph.tasks) together.add(task);
  return kernels;
}

}  // namespace einrel
