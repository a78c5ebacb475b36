#include "exec/memory/alive.h"

#include <algorithm>
#include <map>
#include <utility>

namespace einrel {

AliveArrays::AliveArrays(const TaskGraph& graph, std::vector<bool> in_place)
    : graph_(graph),
      freed_(graph),
      in_place_(std::move(in_place)),
      is_kept_(graph.arrays.size(), false),
      maker_(graph.arrays.size()) {
  in_place_.resize(graph.tasks.size(), false);
}

void AliveArrays::make(std::size_t task, const Told& gets_memory) {
  if (in_place_[task]) return;
  const std::optional<ArrayId> taken = overwritten(graph_.tasks[task]);
  if (taken) maker_[taken->index].reset();
  for (const ArrayId made : graph_.tasks[task].makes) {
    maker_[made.index] = task;
    if (!taken) gets_memory(made);
  }
}

void AliveArrays::free_after(std::size_t task, const Told& gives_back) {
  for (const ArrayId array : freed_[task]) {
    if (!maker_[array.index] || is_kept_[array.index]) continue;
    maker_[array.index].reset();
    gives_back(array);
  }
}

std::int64_t most_alive(const TaskGraph& graph, const std::function<std::int64_t(const TaskArray&)>& amount,
                        std::size_t at_once) {
  AliveArrays arrays(graph);
  std::map<Site, std::int64_t> alive;
  const auto here = [&](ArrayId array) -> std::int64_t& {
    return alive[graph.memory == SiteMemory::apart ? graph[array].site : Site{}];
  };
  std::int64_t most = 0;
  std::size_t made = 0;
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    for (; made < std::min(t + at_once, graph.tasks.size()); ++made)
      arrays.make(made, [&](ArrayId array) { most = std::max(most, here(array) += amount(graph[array])); });
    arrays.free_after(t, [&](ArrayId array) { here(array) -= amount(graph[array]); });
  }
  return most;
}

std::int64_t most_live_bytes(const TaskGraph& graph, std::size_t at_once) {
  return most_alive(
      graph, [](const TaskArray& array) { return bytes_of(array); }, at_once);
}

}  // namespace einrel
