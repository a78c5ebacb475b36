#include "run/executors.h"

#include "exec/executors/serial/serial.h"
#include "exec/executors/starpu/run.h"
#include "exec/executors/threads/task_threads.h"
#include "exec/tasks/timeline.h"

namespace einrel {

std::optional<std::string> states_folder(const RunMemory& memory) {
  if (const auto* const in_order = std::get_if<InOrder>(&memory)) return in_order->folder;
  if (const auto* const spilling = std::get_if<Spilling>(&memory)) return spilling->to.folder;
  return std::nullopt;
}

std::unique_ptr<Executor> executor_for(const TaskGraph& graph, const RunResources& resources, const Job& job) {
  const auto& [threads, memory] = resources;
  if (const auto* const spilling = std::get_if<Spilling>(&memory))
    return std::make_unique<StarpuExecutor>(SessionOptions{threads, spilling->bytes, spilling->to}, job);
  if (job.ranks > 1) return std::make_unique<StarpuExecutor>(SessionOptions{threads, std::nullopt, {}}, job);
  if (is_limited(memory)) return std::make_unique<SerialExecutor>(threads, Slack{0.125, 0});
  if (is_sooner_in_order(graph, threads)) return std::make_unique<SerialExecutor>(threads);
  return std::make_unique<TaskThreads>(threads);
}

}  // namespace einrel
