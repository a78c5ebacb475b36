#include "engine/out_of_core.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "exec/starpu/session.h"

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
    const std::int64_t bytes = bytes_needed(graph, task);
    if (bytes > largest.bytes) largest = {bytes, task.node};
  }
  return largest;
}

bool fits(const LargestTask& largest, const TaskMemory& memory) { return largest.bytes <= most_task_bytes(memory); }

}  // namespace

std::int64_t most_task_bytes(const TaskMemory& memory) {
  const std::int64_t shares = memory.is_in_job ? 4 : 2 * static_cast<std::int64_t>(memory.threads);
  return chunk_memory(memory.limit, memory.threads) / shares;
}

std::int64_t largest_task_bytes(const PlannedTasks& tasks) { return largest_task(tasks.graph).bytes; }

void check_tasks_fit(const Compiled& compiled, const PlannedTasks& tasks, const TaskMemory& memory) {
  const LargestTask largest = largest_task(tasks.graph);
  if (fits(largest, memory)) return;
  std::int64_t enough = memory.limit;
  while (!fits(largest, {enough, memory.threads, memory.is_in_job})) enough += enough / 8 + 1;
  const std::optional<std::size_t> vertex = tasks.vertices[largest.node.index];
  throw UserError(
      fmt::format("--memory {} is too little: a part of '{}' takes {}{}, when cut for {}\n  help: give at least {}{}",
                  bytes_text(memory.limit), vertex ? compiled.graph.vertices[*vertex].name : "the program",
                  bytes_text(largest.bytes),
                  memory.is_in_job ? "" : fmt::format(" on each of {}", counted(memory.threads, "thread")),
                  counted(static_cast<std::size_t>(tasks.graph.sites), "site"), bytes_text(enough),
                  memory.is_in_job ? ", or more ranks" : ", or fewer --threads"));
}

OutOfCorePlan plan_out_of_core(const Compiled& compiled, const std::string& planner, PlanRequest request,
                               std::size_t threads, std::int64_t limit) {
  const TaskMemory memory{limit, threads};
  request.memory.reset();  // of a site; the process has all of them
  for (;; request.sites *= 2) {
    PlanReport plan = std::move(plan_with(compiled, {planner}, request).front());
    PlannedTasks tasks = tasks_of(compiled, plan.plan, {});
    if (request.sites * 2 > most_virtual_sites) check_tasks_fit(compiled, tasks, memory);
    if (fits(largest_task(tasks.graph), memory)) return {std::move(plan), std::move(tasks)};
  }
}

}  // namespace einrel
