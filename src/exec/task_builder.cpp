#include "exec/task_builder.h"

#include "exec/label_values.h"

namespace einrel {
namespace {

/// Where the chunks along each dimension begin, for relations whose keys count chunks dimension by dimension.
std::vector<std::map<std::int64_t, std::int64_t>> begins_of(const RelationType& type) {
  std::vector<std::map<std::int64_t, std::int64_t>> extents(type.rank);
  for (const Chunk& chunk : type.chunks) {
    for (std::size_t d = 0; d < type.rank; ++d) extents[d][chunk.key[d]] = chunk.bound[d].value();
  }
  for (auto& along : extents) {
    std::int64_t begin = 0;
    for (auto& [part, extent] : along) begin += std::exchange(extent, begin);
  }
  return extents;
}

}  // namespace

void TaskBuilder::write(const std::string& name, const RelationType& type, const SiteArrays& chunks) {
  invariant(type.key_arity == type.rank, "the keys of an output count its chunks");
  graph_.outputs.push_back({name, type.dtype, tensor_bound(type)});
  const auto begins = begins_of(type);
  for (const auto& [key, array] : chunks) {
    WriteOutput op{graph_.outputs.size() - 1, {}};
    for (std::size_t d = 0; d < type.rank; ++d) op.begin.push_back(begins[d].at(key[d]));
    graph_.tasks.push_back({std::move(op), {stored(array)}, {}, node_});
  }
}

ArrayId TaskBuilder::make_by_call(std::size_t k, Arguments arguments, std::optional<ArrayId> onto, Site site) {
  for (std::size_t a = arguments.arrays.size(); a-- > 0;) {
    const ArrayId array = arguments.arrays[a];
    const auto made = positions_.find(array);
    if (made == positions_.end()) continue;
    const std::optional<std::size_t> without = number_without_positions(k, a, graph_[array].bound.front());
    if (!without) continue;
    k = *without;
    arguments.numbers.push_back(made->second);
    arguments.arrays.erase(arguments.arrays.begin() + static_cast<std::ptrdiff_t>(a));
  }
  std::vector<Shape> bounds;
  for (const ArrayId argument : arguments.arrays) bounds.push_back(graph_[argument].bound);
  bounds.resize(bounds.size() + arguments.numbers.size());
  const KernelCalls::Call& call = calls_[k](bounds);
  if (onto) arguments.arrays.push_back(*onto);
  return make(CallKernel{k, call.flops, onto.has_value(), std::move(arguments.numbers)}, std::move(arguments.arrays),
              {result_dtype(kernels_[k]), call.bound, site});
}

std::size_t TaskBuilder::kernel_number(const Kernel& kernel) {
  const auto [first, last] = by_name_.equal_range(kernel.name);
  for (auto same = first; same != last; ++same) {
    if (kernels_[same->second] == kernel) return same->second;
  }
  kernels_.push_back(kernel);
  calls_.emplace_back(kernels_.back());
  by_name_.emplace(kernel.name, kernels_.size() - 1);
  return kernels_.size() - 1;
}

std::optional<std::size_t> TaskBuilder::number_without_positions(std::size_t k, std::size_t argument, Extent extent) {
  const auto [known, is_new] = without_positions_.try_emplace({k, argument, extent});
  if (is_new) {
    const std::optional<Kernel> without = without_positions(kernels_[k], argument, extent);
    if (without) known->second = kernel_number(*without);
  }
  return known->second;
}

ArrayId TaskBuilder::stored(ArrayId array) {
  const auto made = positions_.find(array);
  if (made == positions_.end()) return array;
  const Extent extent = graph_[array].bound.front();
  const Site site = graph_[array].site;
  const auto [known, is_new] = stored_.try_emplace({made->second, extent, is_shared() ? Site{} : site});
  if (is_new) {
    const std::size_t k = kernel_number(positions_kernel(extent));
    const KernelCalls::Call& call = calls_[k]({Shape{}});
    known->second =
        add(CallKernel{k, call.flops, false, {made->second}}, {}, {result_dtype(kernels_[k]), call.bound, site});
  }
  return known->second;
}

ArrayId TaskBuilder::add(TaskOp op, std::vector<ArrayId> reads, TaskArray array) {
  graph_.arrays.push_back(std::move(array));
  const ArrayId made{graph_.arrays.size() - 1};
  if (const auto* const read = std::get_if<ReadInput>(&op)) inputs_[made] = {read->input, read->begin};
  graph_.tasks.push_back({std::move(op), std::move(reads), made, node_});
  return made;
}

void TaskBuilder::mark_shared_inputs() {
  for (Task& task : graph_.tasks) {
    auto* const read = std::get_if<ReadInput>(&task.op);
    if (read != nullptr) read->is_shared = shared_inputs_.count({read->input, read->begin}) != 0;
  }
}

void TaskBuilder::drop_positions() {
  if (positions_.empty()) return;
  std::vector<ArrayId> moved;
  std::vector<TaskArray> kept;
  for (std::size_t a = 0; a < graph_.arrays.size(); ++a) {
    moved.push_back({kept.size()});
    if (positions_.count({a}) == 0) kept.push_back(std::move(graph_.arrays[a]));
  }
  graph_.arrays = std::move(kept);
  for (Task& task : graph_.tasks) {
    for (ArrayId& read : task.reads) read = moved[read.index];
    if (!std::holds_alternative<WriteOutput>(task.op)) task.makes = moved[task.makes.index];
  }
}

}  // namespace einrel
