#include "exec/tasks/chunk_kernel.h"

#include <algorithm>
#include <utility>

#include "einsum/graph/vertex_facts.h"
#include "kernel/evaluate.h"
#include "kernel/view.h"

namespace einrel {
EinGraph program_of(const TaskKernel& kernel, const std::vector<Shape>& arguments) {
  EinGraph program;
  for (std::size_t a = 0; a < arguments.size(); ++a)
    program.vertices.push_back({"", kernel.steps.arguments[a], arguments[a], {}, Input{}, {}});
  std::vector<Vertex> vertices = vertices_of(kernel.steps, arguments);
  for (const std::string& name : scalars_read(vertices)) program.scalars.push_back({name, {}, {}});
  for (std::size_t s = 0; s < vertices.size(); ++s) {
    for (const std::size_t read : kernel.steps.steps[s].reads) vertices[s].inputs.push_back(VertexId{read});
    program.vertices.push_back(std::move(vertices[s]));
  }
  for (const std::size_t result : kernel.results) program.outputs.push_back(VertexId{arguments.size() + result});
  return program;
}

std::vector<bool> place_values(const TaskKernel& kernel, const EinGraph& program, std::vector<ArrayLayout>& layouts) {
  const std::size_t arguments = layouts.size();
  std::vector<bool> shares(program.vertices.size(), false);
  for (std::size_t v = arguments; v < program.vertices.size(); ++v) {
    const Vertex& vertex = program.vertices[v];
    const View* const view = view_of(vertex);
    ArrayLayout& layout = layouts.emplace_back(row_major_layout(vertex.dtype, vertex.bound));
    if (view == nullptr || std::binary_search(kernel.results.begin(), kernel.results.end(), v - arguments)) continue;
    const ArrayLayout& operand = layouts[vertex.inputs.front().index];
    if (const auto shared = view_strides(*view, operand.strides)) {
      layout.strides = *shared;
      layout.aligned = operand.aligned;
      shares[v] = true;
    }
  }
  return shares;
}

ChunkProgram chunk_program(const TaskKernel& kernel, const std::vector<ArrayLayout>& arguments, bool onto,
                           const std::vector<std::string>& names) {
  std::vector<Shape> bounds;
  for (const ArrayLayout& argument : arguments) bounds.push_back(argument.shape);
  ChunkProgram program{program_of(kernel, bounds), arguments, {}, {}};
  for (std::size_t s = 0; s < names.size(); ++s) program.graph.vertices[arguments.size() + s].name = names[s];
  program.shares = place_values(kernel, program.graph, program.layouts);
  if (kernel.steps.steps.size() > 1 && !onto) program.fusions = find_fusions(program.graph);
  return program;
}

ChunkKernel::ChunkKernel(const TaskKernel& kernel, const std::vector<ArrayLayout>& arguments,
                         const ScalarBindings& scalars, bool onto)
    : arguments_(arguments.size()) {
  const ChunkProgram program = chunk_program(kernel, arguments, onto);
  for (const ArrayLayout& layout : program.layouts) values_.push_back({layout, {}});
  for (std::size_t r = 0; r < kernel.results.size(); ++r) values_[arguments_ + kernel.results[r]].result = r;
  const std::vector<Vertex>& vertices = program.graph.vertices;
  std::vector<const Fusion*> fusion_of(vertices.size(), nullptr);
  for (const Fusion& fusion : program.fusions) {
    for (const std::size_t member : fusion.members) fusion_of[member] = &fusion;
  }
  for (std::size_t v = arguments_; v < vertices.size(); ++v) {
    if (const Fusion* const fusion = fusion_of[v]) {
      if (fusion->members.back() == v)
        steps_.push_back(
            {prepare_fusion(*fusion, layouts_of(fusion->operands), scalars), fusion->operands, fusion->results, false});
    } else if (program.shares[v]) {
      steps_.push_back({{}, {vertices[v].inputs.front().index}, {v}, true});
    } else if (!is_made(v)) {
      add_step(program.graph, v, scalars, onto && v + 1 == vertices.size());
    }
  }
  is_one_call_ = is_one_call();
}

bool ChunkKernel::is_one_call() const {
  if (steps_.size() != 1 || steps_.front().shares || steps_.front().reads.size() != arguments_) return false;
  const Step& step = steps_.front();
  for (std::size_t a = 0; a < step.reads.size(); ++a) {
    if (step.reads[a] != a) return false;
  }
  for (std::size_t r = 0; r < step.makes.size(); ++r) {
    if (values_[step.makes[r]].result != r) return false;
  }
  return true;
}

std::vector<ArrayLayout> ChunkKernel::layouts_of(const std::vector<std::size_t>& values) const {
  std::vector<ArrayLayout> layouts;
  for (const std::size_t value : values) layouts.push_back(values_[value].layout);
  return layouts;
}

void ChunkKernel::add_step(const EinGraph& program, std::size_t number, const ScalarBindings& scalars, bool onto) {
  const Vertex& vertex = program.vertices[number];
  Step step{{}, {}, {number}, false};
  for (const VertexId input : vertex.inputs) step.reads.push_back(input.index);
  step.kernel = prepare(vertex, layouts_of(step.reads), scalars, onto);
  if (opaque_of(vertex) != nullptr) step.makes = outputs_of(program, vertex);
  steps_.push_back(std::move(step));
}

std::vector<std::size_t> ChunkKernel::outputs_of(const EinGraph& program, const Vertex& vertex) {
  std::vector<std::size_t> made;
  for (const Vertex& output : outputs_together(vertex)) {
    const auto same = std::find_if(program.vertices.begin(), program.vertices.end(), [&](const Vertex& other) {
      const Opaque* const opaque = opaque_of(other);
      return opaque != nullptr && other.inputs == output.inputs && *opaque == *opaque_of(output);
    });
    if (same == program.vertices.end()) values_.push_back({row_major_layout(output.dtype, output.bound), {}});
    made.push_back(same == program.vertices.end() ? values_.size() - 1
                                                  : static_cast<std::size_t>(same - program.vertices.begin()));
  }
  return made;
}

bool ChunkKernel::is_made(std::size_t value) const {
  return std::any_of(steps_.begin(), steps_.end(), [&](const Step& step) {
    return std::find(step.makes.begin(), step.makes.end(), value) != step.makes.end();
  });
}

void ChunkKernel::run(std::span<const std::byte* const> arguments, std::span<std::byte* const> results,
                      Workers& workers) const {
  if (is_one_call_) {
    return workers.run(steps_.front().kernel,
                       {arguments.data(), results.front(), results.size() == 1 ? nullptr : results.data()});
  }
  std::vector<const std::byte*> places(arguments.begin(), arguments.end());
  places.resize(values_.size());
  std::vector<std::shared_ptr<std::byte>> between;
  const auto make = [&](std::size_t value) {
    const auto& [layout, result] = values_[value];
    std::byte* const made =
        result ? results[*result]
               : between.emplace_back(allocate_elements(layout.dtype, layout.shape, workers.pool())).get();
    places[value] = made;
    return made;
  };
  std::vector<const std::byte*> operands;
  std::vector<std::byte*> made;
  for (const Step& step : steps_) {
    if (step.shares) {
      places[step.makes.front()] = places[step.reads.front()];
      continue;
    }
    operands.clear();
    made.clear();
    for (const std::size_t read : step.reads) operands.push_back(places[read]);
    for (const std::size_t value : step.makes) made.push_back(make(value));
    workers.run(step.kernel, {operands.data(), made.front(), made.size() == 1 ? nullptr : made.data()});
  }
}

}  // namespace einrel
