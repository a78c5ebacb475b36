#include "exec/tasks/task_graph.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace einrel {

TaskKernel alone(Kernel kernel) {
  const std::size_t last = kernel.steps.size() - 1;
  return {std::move(kernel), {last}, {}};
}

std::set<IaId> nodes_of(const TaskGraph& graph, const Task& task) {
  const auto together = graph.together.find(task.node);
  const bool is_one = !std::holds_alternative<CallKernel>(task.op) || together == graph.together.end();
  return is_one ? std::set<IaId>{task.node} : together->second;
}

Site site_of(const TaskGraph& graph, const Task& task) {
  return graph[task.makes.empty() ? task.reads.front() : task.makes.front()].site;
}

std::int64_t bytes_of(const TaskArray& array) {
  return element_count(array.bound) * static_cast<std::int64_t>(size_of(array.dtype));
}

double flops_of(const Task& task) {
  const auto* const call = std::get_if<CallKernel>(&task.op);
  return call == nullptr ? 0 : call->flops;
}

std::optional<ArrayId> overwritten(const Task& task) {
  const auto* const call = std::get_if<CallKernel>(&task.op);
  return call != nullptr && call->onto ? std::optional(task.reads.back()) : std::nullopt;
}

std::int64_t bytes_made(const TaskGraph& graph, const Task& task) {
  std::int64_t bytes = 0;
  if (!overwritten(task)) {
    for (const ArrayId made : task.makes) bytes += bytes_of(graph[made]);
  }
  return bytes;
}

std::int64_t bytes_needed(const TaskGraph& graph, const Task& task) {
  std::int64_t bytes = bytes_made(graph, task);
  for (auto read = task.reads.begin(); read != task.reads.end(); ++read) {
    if (std::find(task.reads.begin(), read, *read) == read) bytes += bytes_of(graph[*read]);
  }
  return bytes;
}

LastUses::LastUses(const TaskGraph& graph) : begin_(graph.tasks.size() + 1, 0), arrays_(graph.arrays.size()) {
  std::vector<std::uint32_t> last(graph.arrays.size());
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    for (const ArrayId made : task.makes) last[made.index] = static_cast<std::uint32_t>(t);
    for (const ArrayId read : task.reads) last[read.index] = static_cast<std::uint32_t>(t);
  }
  for (const std::uint32_t task : last) ++begin_[task + 1];
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  std::vector<std::uint32_t> next = begin_;
  for (std::size_t a = 0; a < last.size(); ++a) arrays_[next[last[a]]++] = ArrayId{a};
}

}  // namespace einrel
