#include "engine/memory.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/text.h"
#include "einsum/vertex_facts.h"
#include "tensor/dtype.h"

namespace einrel {
namespace {

std::int64_t bytes_of(const Vertex& vertex) {
  return checked_multiply(element_count(vertex.bound), static_cast<std::int64_t>(size_of(vertex.dtype)));
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

/// What this process can still get: the least of what the machine has free, what its control group and what its own
/// address space allow. Unset where the system does not say.
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

/// Adds to the bytes alive; says for which vertex they are beyond counting.
std::int64_t add_alive(std::int64_t alive, const Vertex& vertex) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(alive, bytes_of(vertex), &sum)) {
    throw UserError(
        fmt::format("the tensors that are alive while '{}' is computed take more than 2^63 bytes; use smaller extents",
                    vertex.name));
  }
  return sum;
}

}  // namespace

MemoryForecast forecast_memory(const Compiled& compiled, const LayoutBindings& layouts) {
  return forecast_memory(compiled.graph, plan_memory(compiled, input_layouts(compiled.graph, layouts)));
}

MemoryForecast forecast_memory(const EinGraph& graph, const MemoryPlan& plan) {
  MemoryForecast forecast;
  std::int64_t live = 0;
  for (const Vertex& vertex : graph.vertices) {
    if (is_input(vertex)) live = add_alive(live, vertex);  // there from the start
  }
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    for (const std::size_t made : plan.made[v]) live = add_alive(live, graph.vertices[made]);
    if (live > forecast.peak_bytes) {
      forecast.peak_bytes = live;
      forecast.peak_vertex = v;
    }
    for (const std::size_t freed : plan.freed[v]) {
      if (!is_input(graph.vertices[freed])) live -= bytes_of(graph.vertices[freed]);
    }
  }
  return forecast;
}

void check_memory(const Compiled& compiled, const LayoutBindings& layouts,
                  const std::function<bool(const Vertex&)>& in_place, std::string_view limit) {
  const EinGraph& graph = compiled.graph;
  const MemoryForecast forecast = forecast_memory(compiled, layouts);
  std::int64_t needed = forecast.peak_bytes;
  for (const Vertex& vertex : graph.vertices) {
    if (is_input(vertex) && in_place(vertex)) needed -= bytes_of(vertex);
  }
  check_available(needed, fmt::format("computing '{}'", graph.vertices[forecast.peak_vertex].name), limit);
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
