#include "exec/chunk_kernel.h"

#include <algorithm>
#include <utility>

#include "einsum/vertex_facts.h"
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
    vertices[s].name = "a chunk of " + vertices[s].name;  // positions in messages are the chunk's
    program.vertices.push_back(std::move(vertices[s]));
  }
  for (const std::size_t result : kernel.results) program.outputs.push_back(VertexId{arguments.size() + result});
  return program;
}

ChunkKernel::ChunkKernel(const TaskKernel& kernel, const std::vector<ArrayLayout>& arguments,
                         const ScalarBindings& scalars, bool onto)
    : arguments_(arguments.size()) {
  std::vector<Shape> bounds;
  for (const ArrayLayout& argument : arguments) {
    bounds.push_back(argument.shape);
    values_.push_back({argument, {}});
  }
  const EinGraph program = program_of(kernel, bounds);
  for (std::size_t v = arguments_; v < program.vertices.size(); ++v)
    values_.push_back({row_major_layout(program.vertices[v].dtype, program.vertices[v].bound), {}});
  for (std::size_t r = 0; r < kernel.results.size(); ++r) values_[arguments_ + kernel.results[r]].result = r;
  const std::vector<Fusion> fusions =
      kernel.steps.steps.size() > 1 && !onto ? find_fusions(program) : std::vector<Fusion>{};
  std::vector<const Fusion*> fusion_of(program.vertices.size(), nullptr);
  for (const Fusion& fusion : fusions) {
    for (const std::size_t member : fusion.members) fusion_of[member] = &fusion;
  }
  for (std::size_t v = arguments_; v < program.vertices.size(); ++v) {
    if (const Fusion* const fusion = fusion_of[v]) {
      if (fusion->members.back() == v) add_fusion(*fusion, scalars);
    } else {
      add_step(program.vertices[v], v, scalars, onto && v + 1 == program.vertices.size());
    }
  }
}

std::vector<ArrayLayout> ChunkKernel::layouts_of(const std::vector<std::size_t>& values) const {
  std::vector<ArrayLayout> layouts;
  for (const std::size_t value : values) layouts.push_back(values_[value].layout);
  return layouts;
}

void ChunkKernel::add_fusion(const Fusion& fusion, const ScalarBindings& scalars) {
  steps_.push_back(
      {prepare_fusion(fusion, layouts_of(fusion.operands), scalars), fusion.operands, fusion.results, false});
}

void ChunkKernel::add_step(const Vertex& vertex, std::size_t number, const ScalarBindings& scalars, bool onto) {
  Step step{{}, {}, {number}, false};
  for (const VertexId input : vertex.inputs) step.reads.push_back(input.index);
  const View* const view = view_of(vertex);
  const auto shared = view == nullptr ? std::nullopt : view_strides(*view, values_[step.reads.front()].layout.strides);
  Value& made = values_[number];
  if (shared && !made.result) {
    made.layout.strides = *shared;
    made.layout.aligned = values_[step.reads.front()].layout.aligned;
    step.shares = true;
  } else {
    step.kernel = prepare(vertex, layouts_of(step.reads), scalars, onto);
  }
  steps_.push_back(std::move(step));
}

void ChunkKernel::run(const std::vector<const std::byte*>& arguments, std::span<std::byte* const> results,
                      Workers& workers) const {
  std::vector<const std::byte*> places = arguments;
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
