#include "engine/guess_seconds.h"

#include <algorithm>
#include <set>
#include <variant>
#include <vector>

#include "machine/processor.h"

namespace einrel {
namespace {

/// On one thread.
double seconds_of(const TaskGraph& graph, const Task& task) {
  constexpr const Processor& processor = nominal_processor;
  if (std::holds_alternative<ReadInput>(task.op)) return processor.call_seconds;  // where it lies, as a rule
  std::int64_t bytes = bytes_made(graph, task);
  for (const ArrayId read : task.reads) bytes += bytes_of(graph[read]);
  return processor.call_seconds +
         std::max(flops_of(task) / processor.flops_per_core, static_cast<double>(bytes) / processor.thread_bandwidth);
}

}  // namespace

double seconds_in_order(const TaskGraph& graph, std::size_t threads) {
  constexpr double least_part_seconds = 4 * nominal_processor.part_seconds;  // where a part packs what others do, too
  constexpr double efficiency = 0.9;                                         // parts are never quite equal
  double all = 0;
  for (const Task& task : graph.tasks) {
    const double seconds = seconds_of(graph, task);
    const bool has_parts = std::holds_alternative<CallKernel>(task.op) && seconds > least_part_seconds;
    all += has_parts ? std::max(seconds / (efficiency * static_cast<double>(threads)), least_part_seconds) : seconds;
  }
  return all;
}

double seconds_side_by_side(const TaskGraph& graph, std::size_t threads) {
  std::vector<double> made(graph.arrays.size(), 0);
  std::multiset<double> free;  // per thread, from when on it is
  for (std::size_t i = 0; i < threads; ++i) free.insert(nominal_processor.wake_seconds);
  for (const Task& task : graph.tasks) {
    double ready = 0;
    for (const ArrayId read : task.reads) ready = std::max(ready, made[read.index]);
    auto thread = free.upper_bound(ready);
    if (thread != free.begin()) --thread;  // that which has waited least
    auto taken = free.extract(thread);
    taken.value() = std::max(taken.value(), ready) + nominal_processor.hand_over_seconds + seconds_of(graph, task);
    for (const ArrayId array : task.makes) made[array.index] = taken.value();
    free.insert(std::move(taken));
  }
  return *free.rbegin();
}

}  // namespace einrel
