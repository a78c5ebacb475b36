#include "engine/memory.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/text.h"
#include "exec/task_body.h"
#include "tensor/dtype.h"

namespace einrel {
namespace {

std::int64_t checked_bytes(const Shape& bound, DType dtype) {
  return checked_multiply(element_count(bound), static_cast<std::int64_t>(size_of(dtype)));
}

/// The number behind a word in one of the system's status files.
std::optional<std::int64_t> number_after(const char* path, const std::string& word) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(word)) return std::strtoll(line.c_str() + word.size(), nullptr, 10);
  }
  return std::nullopt;
}

/// Adds to the bytes alive; says for which task they are beyond counting.
std::int64_t add_alive(std::int64_t alive, std::int64_t bytes, const std::string& name) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(alive, bytes, &sum)) {
    throw UserError(fmt::format(
        "the tensors that are alive while '{}' is computed take more than 2^63 bytes; use smaller extents", name));
  }
  return sum;
}

std::vector<std::optional<ArrayLayout>> input_layouts(const TaskGraph& graph, const LayoutBindings& given) {
  std::vector<std::optional<ArrayLayout>> layouts;
  for (const StoredRelation& input : graph.inputs) {
    layouts.emplace_back(row_major_layout(input.dtype, input.bound));
    const auto found = given.find(input.name);
    if (found != given.end()) layouts.back()->strides = found->second;
  }
  return layouts;
}

}  // namespace

MemoryForecast forecast_memory(const PlannedTasks& whole, const LayoutBindings& layouts) {
  const TaskGraph& graph = whole.graph;
  MemoryForecast forecast;
  std::int64_t live = 0;
  for (const StoredRelation& input : graph.inputs)
    live = add_alive(live, checked_bytes(input.bound, input.dtype), input.name);
  forecast.peak_bytes = live;
  std::vector<bool> stays(graph.arrays.size(), false);  // inputs, which are counted, and outputs
  const std::vector<std::vector<ArrayId>> freed = last_uses(graph);
  const std::vector<std::optional<PartInPlace>> in_place = parts_in_place(graph, input_layouts(graph, layouts));
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    for (const ArrayId made : task.makes) stays[made.index] = in_place[t].has_value();
    if (std::holds_alternative<WriteOutput>(task.op)) stays[task.reads.front().index] = true;
    if (!in_place[t] && !overwritten(task)) {
      for (const ArrayId made : task.makes)
        live = add_alive(live, checked_bytes(graph[made].bound, graph[made].dtype), name_of(whole, t));
    }
    if (live > forecast.peak_bytes) {
      forecast.peak_bytes = live;
      forecast.peak_vertex = whole.vertices[task.node.index].value_or(0);
    }
    for (const ArrayId array : freed[t]) {
      if (!stays[array.index] && overwritten(task) != array) live -= bytes_of(graph[array]);
    }
  }
  return forecast;
}

void check_memory(const PlannedTasks& whole, const LayoutBindings& layouts,
                  const std::function<bool(const StoredRelation&)>& in_place, std::string_view limit) {
  const MemoryForecast forecast = forecast_memory(whole, layouts);
  std::int64_t needed = forecast.peak_bytes;
  for (const StoredRelation& input : whole.graph.inputs) {
    if (in_place(input)) needed -= checked_bytes(input.bound, input.dtype);
  }
  check_available(needed, fmt::format("computing '{}'", whole.names[forecast.peak_vertex]), limit);
}

std::optional<std::int64_t> available_memory() {
  std::optional<std::int64_t> least;
  const auto limit = [&](std::int64_t bytes) {
    least = std::min(least.value_or(bytes), std::max<std::int64_t>(bytes, 0));
  };
  if (const auto kilobytes = number_after("/proc/meminfo", "MemAvailable:")) limit(*kilobytes * 1024);
  const auto group_limit = number_after("/sys/fs/cgroup/memory.max", "");
  const auto group_use = number_after("/sys/fs/cgroup/memory.current", "");
  const auto group_files = number_after("/sys/fs/cgroup/memory.stat", "file ");  // cached files make room when asked
  const bool has_group = group_limit && *group_limit > 0 && group_use && group_files;  // "max" reads as 0
  if (has_group) limit(*group_limit - *group_use + *group_files);
  rlimit space{};
  const auto used = number_after("/proc/self/status", "VmSize:");
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY && used) {
    limit(static_cast<std::int64_t>(space.rlim_cur) - *used * 1024);
  }
  return least;
}

void check_available(std::int64_t needed, const std::string& what, std::string_view limit) {
  const auto available = available_memory();
  if (!available || needed <= *available) return;
  const auto [wanted, free] = bytes_texts(needed, *available);
  throw RunError(
      fmt::format("{} needs {} of memory, but only {} are free; use smaller extents, or limit it ({}): chunks then go "
                  "to disk",
                  what, wanted, free, limit));
}

std::optional<std::int64_t> peak_resident_bytes() {
  // Not getrusage: what it reports begins with the peak of the process that started this one.
  const auto kilobytes = number_after("/proc/self/status", "VmHWM:");
  return kilobytes ? std::optional(*kilobytes * 1024) : std::nullopt;
}

std::optional<std::int64_t> resident_file_bytes() {
  const auto kilobytes = number_after("/proc/self/status", "RssFile:");
  return kilobytes ? std::optional(*kilobytes * 1024) : std::nullopt;
}

}  // namespace einrel
