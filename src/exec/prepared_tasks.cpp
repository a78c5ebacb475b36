#include "exec/prepared_tasks.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace einrel {
PreparedTasks::PreparedTasks(const TaskGraph& graph, const TaskBindings& bindings)
    : graph_(graph),
      inputs_(layouts_of(bindings.inputs)),
      kernels_(bindings.kernels ? bindings.kernels : std::make_shared<ChunkKernels>(graph, bindings.scalars)),
      part_of_(graph.arrays.size(), 0),
      called_(graph.tasks.size(), nullptr) {
  invariant(inputs_.size() == graph.inputs.size(), "every input of a task graph is bound");
  std::vector<std::optional<PartInPlace>> parts = parts_in_place(graph, inputs_);
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) prepare(t, std::move(parts[t]));
}

ArrayLayout PreparedTasks::layout(ArrayId array) const {
  const PartInPlace* const part = in_place(array);
  return part == nullptr ? row_major_layout(graph_[array].dtype, graph_[array].bound) : part->layout;
}

void PreparedTasks::prepare(std::size_t t, std::optional<PartInPlace> part) {
  const Task& task = graph_.tasks[t];
  if (const auto* const call = std::get_if<CallKernel>(&task.op)) {
    std::vector<ArrayLayout> arguments;
    for (const ArrayId read : task.reads) arguments.push_back(layout(read));
    if (call->onto) arguments.pop_back();
    called_[t] = &(*kernels_)(*call, arguments);
  } else if (std::holds_alternative<Send>(task.op)) {  // the same array
    part_of_[task.makes.front().index] = part_of_[task.reads.front().index];
  } else if (part) {
    parts_.push_back(*std::move(part));
    part_of_[task.makes.front().index] = static_cast<std::uint32_t>(parts_.size());
  }
}

bool PreparedTasks::is_for(const TaskBindings& bindings) const {
  const auto lies_so = [](const std::optional<ArrayLayout>& layout, const InputSource& input) {
    const auto* const tensor = std::get_if<Tensor>(&input);
    return tensor == nullptr ? !layout : layout && has_layout(*tensor, *layout);
  };
  return std::equal(inputs_.begin(), inputs_.end(), bindings.inputs.begin(), bindings.inputs.end(), lies_so) &&
         have_same_bits(kernels_->scalars(), bindings.scalars);
}

}  // namespace einrel
