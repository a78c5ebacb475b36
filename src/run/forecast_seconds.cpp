#include "run/forecast_seconds.h"

#include <algorithm>
#include <map>
#include <set>
#include <variant>

#include "exec/tasks/timeline.h"
#include "machine/seconds.h"

namespace einrel {
namespace {

/// By operation, on how many sites kernels compute it.
std::vector<std::int64_t> sites_of_nodes(const PlannedTasks& tasks) {
  std::vector<std::set<Site>> sites(tasks.vertices.size());
  for (const Task& task : tasks.graph.tasks) {
    if (std::holds_alternative<CallKernel>(task.op)) sites[task.node.index].insert(site_of(tasks.graph, task));
  }
  std::vector<std::int64_t> counts;
  for (const std::set<Site>& of_node : sites)
    counts.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(of_node.size())));
  return counts;
}

}  // namespace

SecondsForecast::SecondsForecast(const PlannedTasks& tasks, const Machine& machine, std::size_t threads)
    : tasks_(tasks),
      machine_(machine),
      threads_(threads),
      on_one_(tasks.graph.tasks.size(), 0),
      on_threads_(tasks.graph.tasks.size(), 0),
      sites_(sites_of_nodes(tasks)) {}

void SecondsForecast::add(std::size_t task, const KernelCall& call) {
  on_one_[task] += kernel_seconds(call.kernel, call.seconds, machine_);
  // How a kernel is cut into parts follows what is modelled, and so does what calibrate compares with.
  on_threads_[task] += kernel_seconds(call.kernel, seconds_on_threads(call.seconds, threads_), machine_);
}

double SecondsForecast::task_seconds(std::size_t task, const std::vector<double>& by_kernels,
                                     std::size_t threads) const {
  const Task& made = tasks_.graph.tasks[task];
  if (std::holds_alternative<ReadInput>(made.op) || std::holds_alternative<WriteOutput>(made.op)) return 0;
  const std::int64_t busy = sites_[made.node.index];
  const auto bytes = static_cast<double>(bytes_needed(tasks_.graph, made));
  const double share = std::min(1.0, static_cast<double>(threads) / machine_.cores);
  const bool is_beyond_caches = bytes > static_cast<double>(nominal_processor.third_cache);
  const double memory = is_beyond_caches ? memory_seconds(bytes, busy, machine_) / share : 0;
  if (std::holds_alternative<CopyBoxes>(made.op))
    return std::max(kernel_seconds("copy", copied_byte_seconds * bytes / 2, machine_), memory);
  return std::max(by_kernels[task] / speed_up(machine_.flops_alone, busy, machine_), memory);
}

std::vector<double> SecondsForecast::all_seconds(std::size_t threads) const {
  const std::vector<double>& by_kernels = threads == 1 ? on_one_ : on_threads_;
  const bool is_by_ranks = tasks_.graph.memory == SiteMemory::apart;
  const double start = is_by_ranks ? machine_.task_seconds : nominal_processor.call_seconds;
  std::vector<double> seconds;
  for (std::size_t t = 0; t < tasks_.graph.tasks.size(); ++t)
    seconds.push_back(start + task_seconds(t, by_kernels, threads));
  return seconds;
}

double SecondsForecast::seconds(bool in_order) const {
  if (tasks_.graph.memory == SiteMemory::apart) return seconds_on_sites(tasks_.graph, all_seconds(threads_), machine_);
  if (in_order || is_sooner_in_order(tasks_.graph, threads_)) return seconds_in_order(all_seconds(threads_));
  return seconds_side_by_side(tasks_.graph, all_seconds(1), threads_);
}

namespace {

/// By its operations and bytes.
double charged_seconds(const TaskGraph& graph, const Task& task, std::int64_t busy, const Machine& machine) {
  const bool is_kernel = std::holds_alternative<CallKernel>(task.op);
  if (!is_kernel && !std::holds_alternative<CopyBoxes>(task.op)) return 0;
  return computing_seconds({.flops = flops_of(task),
                            .on = graph[task.makes.front()].dtype,
                            .bytes = static_cast<double>(bytes_needed(graph, task)),
                            .calls = 1,
                            .busy = busy},
                           machine);
}

}  // namespace

std::vector<double> task_seconds(const EinGraph& graph, const PlannedTasks& tasks, const Machine& machine,
                                 std::size_t threads) {
  if (!machine.kernel_times.empty()) {
    SecondsForecast forecast(tasks, machine, threads);
    kernel_calls(graph, tasks, {}, [&](std::size_t task, const KernelCall& call) { forecast.add(task, call); });
    std::vector<double> seconds = forecast.by_task();
    for (std::size_t t = 0; t < seconds.size(); ++t) {
      if (std::holds_alternative<Send>(tasks.graph.tasks[t].op)) seconds[t] = 0;
    }
    return seconds;
  }
  const std::vector<std::int64_t> busy = sites_of_nodes(tasks);
  std::vector<double> seconds;
  for (const Task& task : tasks.graph.tasks)
    seconds.push_back(charged_seconds(tasks.graph, task, busy[task.node.index], machine));
  return seconds;
}

}  // namespace einrel
