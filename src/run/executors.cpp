#include "run/executors.h"

#include <algorithm>

#include "exec/executors/serial/serial.h"
#include "exec/executors/starpu/run.h"
#include "exec/executors/threads/task_threads.h"
#include "exec/memory/alive.h"
#include "exec/tasks/timeline.h"
#include "run/memory.h"

namespace einrel {

std::optional<std::string> states_folder(const RunMemory& memory) {
  if (const auto* const in_order = std::get_if<InOrder>(&memory)) return in_order->folder;
  if (const auto* const spilling = std::get_if<Spilling>(&memory)) return spilling->to.folder;
  return std::nullopt;
}

std::int64_t most_bytes_in_process(const TaskGraph& graph, const RunResources& resources) {
  if (std::holds_alternative<Spilling>(resources.memory)) return any_bytes;
  if (is_limited(resources.memory) || is_sooner_in_order(graph, resources.threads)) return 0;
  return std::min(most_live_bytes(graph, 2 * resources.threads), available_memory().value_or(any_bytes));
}

std::unique_ptr<Executor> executor_for(const TaskGraph& graph, const RunResources& resources, const Job& job) {
  const std::size_t threads = resources.threads;
  const RunMemory& memory = resources.memory;
  if (const auto* const spilling = std::get_if<Spilling>(&memory))
    return std::make_unique<StarpuExecutor>(SessionOptions{threads, spilling->bytes, spilling->to}, job);
  if (job.ranks > 1) return std::make_unique<StarpuExecutor>(SessionOptions{threads, std::nullopt, {}}, job);
  if (is_limited(memory)) return std::make_unique<SerialExecutor>(threads, Slack{0.125, 0});
  if (is_sooner_in_order(graph, threads)) return std::make_unique<SerialExecutor>(threads);
  return std::make_unique<TaskThreads>(threads);
}

}  // namespace einrel
