#include "exec/chunk_kernel.h"

#include "einsum/vertex_facts.h"
#include "kernel/evaluate.h"
#include "kernel/view.h"

namespace einrel {

ChunkKernel::ChunkKernel(const Kernel& kernel, const std::vector<ArrayLayout>& arguments, const ScalarBindings& scalars,
                         bool onto) {
  std::vector<Shape> bounds;
  for (const ArrayLayout& argument : arguments) bounds.push_back(argument.shape);
  std::vector<ArrayLayout> values = arguments;
  std::vector<Vertex> vertices = vertices_of(kernel, std::move(bounds));
  for (Vertex& vertex : vertices) vertex.name = "a chunk of " + vertex.name;  // positions in messages are the chunk's
  for (std::size_t v = 0; v < vertices.size(); ++v) {
    std::vector<ArrayLayout> operands;
    for (const std::size_t read : kernel.steps[v].reads) operands.push_back(values[read]);
    Step step{{}, kernel.steps[v].reads, row_major_layout(vertices[v].dtype, vertices[v].bound), false};
    const View* const view = view_of(vertices[v]);
    const auto shared = view == nullptr ? std::nullopt : view_strides(*view, operands.front().strides);
    if (shared && v + 1 < vertices.size()) {
      step.result.strides = *shared;
      step.result.aligned = operands.front().aligned;
      step.shares = true;
    } else {
      step.kernel = prepare(vertices[v], operands, scalars, onto && v + 1 == vertices.size());
    }
    values.push_back(step.result);
    steps_.push_back(std::move(step));
  }
}

void ChunkKernel::run(const std::vector<const std::byte*>& arguments, std::byte* result, Workers& workers) const {
  std::vector<const std::byte*> values = arguments;
  std::vector<std::shared_ptr<std::byte>> between;
  std::vector<const std::byte*> operands;
  for (const Step& step : steps_) {
    if (step.shares) {
      values.push_back(values[step.reads.front()]);
      continue;
    }
    operands.clear();
    for (const std::size_t read : step.reads) operands.push_back(values[read]);
    std::byte* to = result;
    if (&step != &steps_.back()) {
      between.push_back(allocate_elements(step.result.dtype, step.result.shape, workers.pool()));
      to = between.back().get();
    }
    workers.run(step.kernel, {operands.data(), to});
    values.push_back(to);
  }
}

}  // namespace einrel
