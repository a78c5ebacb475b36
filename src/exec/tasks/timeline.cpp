#include "exec/tasks/timeline.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <variant>

#include "machine/seconds.h"

namespace einrel {
namespace {

/// When the arrays are there.
class Made {
 public:
  explicit Made(const TaskGraph& graph) : at_(graph.arrays.size(), 0) {}
  /// All that a task reads.
  double ready(const Task& task) const {
    double at = 0;
    for (const ArrayId read : task.reads) at = std::max(at, at_[read.index]);
    return at;
  }
  void make(const Task& task, double at) {
    for (const ArrayId array : task.makes) at_[array.index] = at;
  }

 private:
  std::vector<double> at_;
};

double rough_seconds(const TaskGraph& graph, const Task& task, std::size_t threads) {
  constexpr const Processor& processor = nominal_processor;
  if (std::holds_alternative<ReadInput>(task.op)) return processor.call_seconds;  // where it lies, as a rule
  std::int64_t bytes = bytes_made(graph, task);
  for (const ArrayId read : task.reads) bytes += bytes_of(graph[read]);
  const double seconds = call_seconds(processor, flops_of(task), static_cast<double>(bytes));
  return std::holds_alternative<CallKernel>(task.op) ? seconds_on_threads(seconds, threads) : seconds;
}

/// Good enough to choose how tasks run in one process.
std::vector<double> rough_seconds(const TaskGraph& graph, std::size_t threads) {
  std::vector<double> seconds;
  for (const Task& task : graph.tasks) seconds.push_back(rough_seconds(graph, task, threads));
  return seconds;
}

}  // namespace

double seconds_in_order(const std::vector<double>& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

double seconds_side_by_side(const TaskGraph& graph, const std::vector<double>& seconds, std::size_t threads) {
  Made made(graph);
  std::multiset<double> free;  // per thread, from when on it is
  for (std::size_t i = 0; i < threads; ++i) free.insert(nominal_processor.wake_seconds);
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const double ready = made.ready(graph.tasks[t]);
    auto thread = free.upper_bound(ready);
    if (thread != free.begin()) --thread;  // that which has waited least
    auto taken = free.extract(thread);
    taken.value() = std::max(taken.value(), ready) + nominal_processor.hand_over_seconds + seconds[t];
    made.make(graph.tasks[t], taken.value());
    free.insert(std::move(taken));
  }
  return *free.rbegin();
}

bool is_sooner_in_order(const TaskGraph& graph, std::size_t threads) {
  if (threads == 1 || graph.sites == 1) return true;
  return seconds_in_order(rough_seconds(graph, threads)) <=
         seconds_side_by_side(graph, rough_seconds(graph, 1), threads);
}

double seconds_on_sites(const TaskGraph& graph, const std::vector<double>& seconds, const Machine& machine) {
  Made made(graph);
  std::vector<double> computing(static_cast<std::size_t>(graph.sites), 0);  // per site, until when
  std::vector<double> receiving = computing;
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    const auto site = static_cast<std::size_t>(site_of(graph, task));
    const bool is_message = std::holds_alternative<Send>(task.op);
    double& until = (is_message ? receiving : computing)[site];
    double taken = seconds[t];
    if (is_message) {
      const auto bytes = static_cast<double>(bytes_of(graph[task.makes.front()]));
      taken = receiving_seconds(bytes, 1, static_cast<double>(machine.sites_per_node), machine);
    }
    until = std::max(until, made.ready(task)) + taken;
    made.make(task, until);
  }
  return std::max(*std::max_element(computing.begin(), computing.end()),
                  *std::max_element(receiving.begin(), receiving.end()));
}

}  // namespace einrel
