#include "run/bookkeeping.h"

#include <algorithm>

#include "exec/executors/starpu/run.h"
#include "exec/memory/alive.h"

namespace einrel {
namespace {

/// Bytes of each.
struct Each {
  std::int64_t input = 0;
  std::int64_t computed = 0;  ///< an output or intermediate: its statement, plan and kernels
  std::int64_t task = 0;
  std::int64_t alive = 0;  ///< array
};
constexpr Each while_planning{500, 7000, 800, 0};
constexpr Each in_order{500, 4500, 500, 300};
constexpr Each by_starpu{500, 4500, 700, 5000};

/// On a site, when tasks run one after the other.
std::int64_t most_arrays_alive(const TaskGraph& graph) {
  return most_alive(graph, [](const TaskArray&) { return 1; });
}

std::int64_t bytes_of(const PlannedTasks& tasks, const Each& each, std::int64_t alive) {
  constexpr std::int64_t own = std::int64_t{1} << 20;
  const auto inputs = static_cast<std::int64_t>(tasks.graph.inputs.size());
  const std::int64_t computed = static_cast<std::int64_t>(tasks.names.size()) - inputs;
  const std::int64_t all = each.input * inputs + each.computed * computed +
                           each.task * static_cast<std::int64_t>(tasks.graph.tasks.size()) + each.alive * alive;
  return std::max<std::int64_t>(0, all - own);
}

Bookkeeping bookkeeping_of(const PlannedTasks& tasks, const Each& each, std::int64_t alive) {
  return {bytes_of(tasks, while_planning, 0), bytes_of(tasks, each, alive)};
}

}  // namespace

Bookkeeping bookkeeping_in_order(const PlannedTasks& tasks) {
  return bookkeeping_of(tasks, in_order, most_arrays_alive(tasks.graph));
}

Bookkeeping bookkeeping_by_starpu(const PlannedTasks& tasks) {
  const auto arrays = static_cast<std::int64_t>(tasks.graph.arrays.size());
  const std::int64_t alive = most_arrays_alive(tasks.graph) + most_tasks_submitted;
  return bookkeeping_of(tasks, by_starpu, std::min(alive, arrays));
}

std::int64_t left_for_arrays(std::int64_t limit, const Bookkeeping& bookkeeping) {
  return bookkeeping.planning > limit ? 0 : std::max<std::int64_t>(0, limit - bookkeeping.running);
}

std::int64_t most_of(const Bookkeeping& bookkeeping) { return std::max(bookkeeping.planning, bookkeeping.running); }

}  // namespace einrel
