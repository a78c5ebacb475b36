#include "engine/out_of_core.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace einrel {
namespace {

/// Chunks of more sites than this are too many to plan for while the user waits.
constexpr std::int64_t most_virtual_sites = 4096;

/// The most that one task has in memory, and which.
struct LargestTask {
  std::int64_t bytes = 0;
  IaId node;
};

LargestTask largest_task(const TaskGraph& graph) {
  LargestTask largest;
  for (const Task& task : graph.tasks) {
    std::int64_t bytes = std::holds_alternative<WriteOutput>(task.op) ? 0 : bytes_of(graph[task.makes]);
    for (const ArrayId read : task.reads) bytes += bytes_of(graph[read]);
    if (bytes > largest.bytes) largest = {bytes, task.node};
  }
  return largest;
}

bool fits(const LargestTask& largest, std::size_t at_once, std::int64_t memory) {
  return largest.bytes <= memory / 2 / static_cast<std::int64_t>(at_once);
}

}  // namespace

void check_tasks_fit(const Compiled& compiled, const PlannedTasks& tasks, std::size_t at_once, std::int64_t memory) {
  const LargestTask largest = largest_task(tasks.graph);
  if (fits(largest, at_once, memory)) return;
  const std::optional<std::size_t> vertex = tasks.vertices[largest.node.index];
  const auto bytes = static_cast<double>(largest.bytes);
  throw UserError(fmt::format(
      "--memory {} is too little: a part of '{}' takes {}, {} at once, when cut for {}\n"
      "  help: give at least {}, more sites, or fewer --threads",
      bytes_text(static_cast<double>(memory)), vertex ? compiled.graph.vertices[*vertex].name : "the program",
      bytes_text(bytes), at_once, counted(static_cast<std::size_t>(tasks.graph.sites), "site"),
      bytes_text(2.0 * bytes * static_cast<double>(at_once))));
}

OutOfCorePlan plan_out_of_core(const Compiled& compiled, const std::string& planner, PlanRequest request,
                               std::size_t threads, std::int64_t memory) {
  request.memory.reset();  // of a site; the process has all of them
  for (;; request.sites *= 2) {
    PlanReport plan = std::move(plan_with(compiled, {planner}, request).front());
    PlannedTasks tasks = tasks_of(compiled, plan.plan, {});
    if (request.sites * 2 > most_virtual_sites) check_tasks_fit(compiled, tasks, threads, memory);
    if (fits(largest_task(tasks.graph), threads, memory)) return {std::move(plan), std::move(tasks)};
  }
}

}  // namespace einrel
