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

}  // namespace

OutOfCorePlan plan_out_of_core(const Compiled& compiled, const std::string& planner, PlanRequest request,
                               std::size_t threads, std::int64_t memory) {
  request.memory.reset();  // of a site; the process has all of them
  for (;; request.sites *= 2) {
    PlanReport plan = std::move(plan_with(compiled, {planner}, request).front());
    PlannedTasks tasks = tasks_of(compiled, plan.plan, {});
    const LargestTask largest = largest_task(tasks.graph);
    const std::int64_t needed = largest.bytes * static_cast<std::int64_t>(threads);
    if (needed <= memory / 2) return {std::move(plan), std::move(tasks)};
    if (request.sites * 2 > most_virtual_sites) {
      const std::optional<std::size_t> vertex = tasks.vertices[largest.node.index];
      throw UserError(fmt::format("--memory {} is too little: a part of '{}' takes {} on each of {}, even when cut for {} "
                                  "sites\n  help: give at least {}, or fewer --threads",
                                  bytes_text(static_cast<double>(memory)),
                                  vertex ? compiled.graph.vertices[*vertex].name : "the program",
                                  bytes_text(static_cast<double>(largest.bytes)), counted(threads, "thread"),
                                  request.sites, bytes_text(2.0 * static_cast<double>(needed))));
    }
  }
}

}  // namespace einrel
