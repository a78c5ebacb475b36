#include "exec/tasks/prepared_tasks.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace einrel {
PreparedTasks::PreparedTasks(const TaskGraph& graph, const TaskBindings& bindings, std::optional<Site> site,
                             std::shared_ptr<ChunkKernels> kernels)
    : graph_(graph),
      inputs_(layouts_of(bindings.inputs)),
      kernels_(kernels ? std::move(kernels) : std::make_shared<ChunkKernels>(graph, bindings.scalars)),
      changes_(kernels_->rebind(bindings.scalars)),
      part_of_(graph.arrays.size(), 0),
      called_(graph.tasks.size(), nullptr),
      last_uses_(graph) {
  invariant(inputs_.size() == graph.inputs.size(), "every input of a task graph is bound");
  std::vector<std::optional<PartInPlace>> parts = parts_in_place(graph, inputs_);
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    const bool is_send = std::holds_alternative<Send>(task.op);
    if (site && (is_send || site_of(graph, task) != *site)) continue;  // what has arrived is no part of an input
    if (std::holds_alternative<CallKernel>(task.op)) {
      find_kernel(t);
    } else if (is_send) {  // the same array
      part_of_[task.makes.front().index] = part_of_[task.reads.front().index];
    } else if (parts[t]) {
      parts_.push_back(*std::move(parts[t]));
      part_of_[task.makes.front().index] = static_cast<std::uint32_t>(parts_.size());
    }
  }
}

ArrayLayout PreparedTasks::layout(ArrayId array) const {
  const PartInPlace* const part = in_place(array);
  return part == nullptr ? row_major_layout(graph_[array].dtype, graph_[array].bound) : part->layout;
}

void PreparedTasks::find_kernel(std::size_t t) {
  const Task& task = graph_.tasks[t];
  const auto& call = std::get<CallKernel>(task.op);
  std::vector<ArrayLayout> arguments;
  for (const ArrayId read : task.reads) arguments.push_back(layout(read));
  if (call.onto) arguments.pop_back();
  called_[t] = &(*kernels_)(call, arguments);
}

void PreparedTasks::rebind(const ScalarBindings& scalars) {
  const std::size_t changes = kernels_->rebind(scalars);
  if (changes == changes_) return;
  std::set<std::string> names;
  for (const auto& [name, value] : scalars) names.insert(name);
  for (std::size_t t = 0; t < graph_.tasks.size(); ++t) {
    const auto* const call = std::get_if<CallKernel>(&graph_.tasks[t].op);
    if (called_[t] != nullptr && reads_scalar(graph_.kernels[call->kernel], names)) find_kernel(t);
  }
  changes_ = changes;  // now, or kernels that are gone would be called once one of them could not be made
}

bool PreparedTasks::is_for(const TaskBindings& bindings) const {
  const auto lies_so = [](const std::optional<ArrayLayout>& layout, const InputSource& input) {
    const auto* const tensor = std::get_if<Tensor>(&input);
    return tensor == nullptr ? !layout : layout && has_layout(*tensor, *layout);
  };
  return std::equal(inputs_.begin(), inputs_.end(), bindings.inputs.begin(), bindings.inputs.end(), lies_so);
}

}  // namespace einrel
