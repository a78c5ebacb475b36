#include "run/kernels.h"

#include <algorithm>
#include <set>

#include "einsum/graph/vertex_facts.h"
#include "exec/tasks/chunk_kernel.h"
#include "exec/tasks/task_body.h"
#include "kernel/evaluate.h"
#include "kernel/fusion/products.h"

namespace einrel {
namespace {

/// Of a product that is computed slab by slab: by what, with seconds of all slabs.
void name_slab_kernel(Choice choice, double slabs, KernelCall& call) {
  for (Considered& considered : choice.considered) {
    if (auto* const seconds = std::get_if<double>(&considered.outcome)) *seconds *= slabs;
  }
  call.kernel = choice.kernel;
  call.path = choice.offer.path + ", slab by slab";
  call.seconds = choice.offer.seconds * slabs;
  call.own_bytes = choice.offer.own_bytes + choice.offer.shared_bytes;
  call.shared_bytes = 0;
  call.considered = std::move(choice.considered);
}

/// How all arrays lie: parts of inputs where they are, others row-major.
std::vector<ArrayLayout> layouts_of_arrays(const TaskGraph& graph, const LayoutBindings& given) {
  std::vector<ArrayLayout> layouts;
  for (const TaskArray& array : graph.arrays) layouts.push_back(row_major_layout(array.dtype, array.bound));
  const std::vector<std::optional<PartInPlace>> in_place = parts_in_place(graph, input_layouts(graph, given));
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    if (in_place[t]) layouts[task.makes.front().index] = in_place[t]->layout;
    if (std::holds_alternative<Send>(task.op)) layouts[task.makes.front().index] = layouts[task.reads.front().index];
  }
  return layouts;
}

KernelCall call_of(const Vertex& vertex, Choice choice) {
  KernelCall call{.kernel = std::string(choice.kernel),
                  .path = std::move(choice.offer.path),
                  .seconds = choice.offer.seconds,
                  .own_bytes = choice.offer.own_bytes,
                  .shared_bytes = choice.offer.shared_bytes,
                  .considered = std::move(choice.considered),
                  .extents = {},
                  .together = {}};
  for (const Label& label : labels_of(vertex)) call.extents.emplace_back(label.name, label.extent.value());
  return call;
}

/// Per step of a kernel, what computes it for such arguments.
using StepCalls = std::vector<std::optional<KernelCall>>;

/// Steps that run slab by slab.
void add_slabs(const Fusion& fusion, const ChunkProgram& program, const ScalarBindings& scalars, StepCalls& calls) {
  std::vector<ArrayLayout> operands;
  for (const std::size_t operand : fusion.operands) operands.push_back(program.layouts[operand]);
  FusionKernels all = kernels_of(fusion, operands, scalars);
  const std::size_t arguments = program.graph.vertices.size() - calls.size();
  const auto call_of_step = [&](const Vertex& vertex) -> KernelCall* {  // values that several share are no step
    for (const std::size_t member : fusion.members) {
      std::optional<KernelCall>& call = calls[member - arguments];
      if (call && program.graph.vertices[member].name == vertex.name) return &*call;
    }
    return nullptr;
  };
  for (const std::size_t quotient : all.row_by_row) {
    if (KernelCall* const softmax = call_of_step(fusion.program.vertices[quotient])) softmax->row_by_row = true;
  }
  for (SlabKernel& slab : all.kernels) {
    const Vertex& vertex = fusion.program.vertices[slab.vertex];
    KernelCall* const own = is_light(fusion.program, vertex) ? nullptr : call_of_step(vertex);
    if (own != nullptr) name_slab_kernel(std::move(slab.choice), all.slabs, *own);
  }
}

/// Whether an earlier step of linear algebra makes this output, too.
bool comes_along(const std::vector<Vertex>& vertices, std::size_t v) {
  const Opaque* const own = opaque_of(vertices[v]);
  return own != nullptr &&
         std::any_of(vertices.begin(), vertices.begin() + static_cast<std::ptrdiff_t>(v), [&](const Vertex& other) {
           const Opaque* const opaque = opaque_of(other);
           return opaque != nullptr && opaque->function == own->function && other.inputs == vertices[v].inputs;
         });
}

StepCalls step_calls(const TaskKernel& kernel, const std::vector<ArrayLayout>& arguments, bool onto,
                     const ScalarBindings& scalars) {
  std::vector<std::string> names;
  for (std::size_t s = 0; s < kernel.steps.steps.size(); ++s) names.push_back(std::to_string(s));
  const ChunkProgram program = chunk_program(kernel, arguments, onto, names);
  const std::vector<Vertex>& vertices = program.graph.vertices;
  StepCalls calls(names.size());
  for (std::size_t v = arguments.size(); v < vertices.size(); ++v) {
    if (program.shares[v] || comes_along(vertices, v)) continue;
    std::vector<ArrayLayout> operands;
    for (const VertexId input : vertices[v].inputs) operands.push_back(program.layouts[input.index]);
    std::optional<Choice> choice = choice_of(vertices[v], operands, scalars, onto && v + 1 == vertices.size());
    if (choice) calls[v - arguments.size()] = call_of(vertices[v], *std::move(choice));
  }
  for (const Fusion& fusion : program.fusions) add_slabs(fusion, program, scalars, calls);
  return calls;
}

/// Takes one task after the other.
class Calls {
 public:
  Calls(const EinGraph& graph, const PlannedTasks& tasks, const LayoutBindings& layouts, const CallListener& tell)
      : tasks_(tasks),
        tell_(tell),
        scalars_(some_scalars(graph)),
        layouts_(layouts_of_arrays(tasks.graph, layouts)),
        ready_(tasks.graph.kernels.size()),
        of_vertices_(tasks.names.size()) {}

  void add(std::size_t t) {
    const Task& task = tasks_.graph.tasks[t];
    const auto* const call = std::get_if<CallKernel>(&task.op);
    if (call == nullptr) return;
    const TaskKernel& kernel = tasks_.graph.kernels[call->kernel];
    const StepCalls& steps = steps_of(task, *call);
    std::set<std::size_t> members;
    for (const IaId node : kernel.nodes) {
      if (const auto vertex = tasks_.vertices[node.index]) members.insert(*vertex);
    }
    for (std::size_t s = 0; s < steps.size(); ++s) {
      if (tell_ && steps[s]) tell_(t, *steps[s]);
      const IaId node = kernel.nodes.empty() ? task.node : kernel.nodes[s];
      const std::optional<std::size_t> vertex = tasks_.vertices[node.index];
      if (vertex && steps[s]) count(*vertex, *steps[s], members);
    }
  }

  std::vector<std::vector<KernelCall>> sorted() && {
    for (std::vector<KernelCall>& calls : of_vertices_) {
      std::stable_sort(calls.begin(), calls.end(),
                       [](const KernelCall& a, const KernelCall& b) { return a.all_seconds() > b.all_seconds(); });
    }
    return std::move(of_vertices_);
  }

 private:
  /// For arguments that lie so; found once for all tasks alike.
  struct Ready {
    std::vector<ArrayLayout> arguments;
    bool onto = false;
    StepCalls steps;
  };

  const StepCalls& steps_of(const Task& task, const CallKernel& call) {
    std::vector<ArrayLayout> arguments;
    for (const ArrayId read : task.reads) arguments.push_back(layouts_[read.index]);
    if (call.onto) arguments.pop_back();
    arguments.resize(arguments.size() + call.numbers.size(), row_major_layout(DType::i64, {}));
    std::vector<Ready>& ready = ready_[call.kernel];
    const auto known = std::find_if(ready.begin(), ready.end(), [&](const Ready& other) {
      return other.onto == call.onto && other.arguments == arguments;
    });
    if (known != ready.end()) return known->steps;
    StepCalls steps = step_calls(tasks_.graph.kernels[call.kernel], arguments, call.onto, scalars_);
    return ready.emplace_back(Ready{std::move(arguments), call.onto, std::move(steps)}).steps;
  }

  void count(std::size_t vertex, const KernelCall& call, const std::set<std::size_t>& members) {
    std::vector<std::string> together;
    for (const std::size_t other : members) {
      if (other != vertex) together.push_back(tasks_.names[other]);
    }
    std::vector<KernelCall>& calls = of_vertices_[vertex];
    const auto known = std::find_if(calls.begin(), calls.end(), [&](const KernelCall& other) {
      return other.path == call.path && other.kernel == call.kernel && other.extents == call.extents &&
             other.seconds == call.seconds && other.row_by_row == call.row_by_row && other.together == together;
    });
    if (known != calls.end()) {
      ++known->times;
    } else {
      calls.push_back(call);
      calls.back().together = std::move(together);
    }
  }

  const PlannedTasks& tasks_;
  const CallListener& tell_;
  ScalarBindings scalars_;
  std::vector<ArrayLayout> layouts_;
  std::vector<std::vector<Ready>> ready_;  // by kernel; few, since chunks of a tensor differ at its ends only
  std::vector<std::vector<KernelCall>> of_vertices_;
};

}  // namespace

std::vector<std::optional<ArrayLayout>> input_layouts(const TaskGraph& graph, const LayoutBindings& given) {
  std::vector<std::optional<ArrayLayout>> layouts;
  for (const StoredRelation& input : graph.inputs) {
    layouts.emplace_back(row_major_layout(input.dtype, input.bound));
    const auto found = given.find(input.name);
    if (found != given.end()) layouts.back()->strides = found->second;
  }
  return layouts;
}

std::vector<std::vector<KernelCall>> kernel_calls(const EinGraph& graph, const PlannedTasks& tasks,
                                                  const LayoutBindings& layouts, const CallListener& tell) {
  Calls calls(graph, tasks, layouts, tell);
  for (std::size_t t = 0; t < tasks.graph.tasks.size(); ++t) calls.add(t);
  return std::move(calls).sorted();
}

}  // namespace einrel
