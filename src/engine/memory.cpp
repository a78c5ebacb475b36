#include "engine/memory.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/text.h"
#include "kernel/view.h"
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

bool is_input(const Vertex& vertex) { return std::holds_alternative<Input>(vertex.op); }

/// Whose memory each vertex uses: its own, or that of the vertex it is a view of.
std::vector<std::size_t> memory_owners(const EinGraph& graph, const LayoutBindings& layouts) {
  std::vector<std::size_t> owner(graph.vertices.size());
  std::vector<Strides> strides(graph.vertices.size());
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    owner[v] = v;
    const auto layout = is_input(vertex) ? layouts.find(vertex.name) : layouts.end();
    strides[v] = layout != layouts.end() ? layout->second : row_major_strides(vertex.bound);
    const auto* view = std::get_if<View>(&vertex.op);
    if (view == nullptr) continue;
    if (auto shared = view_strides(*view, strides[vertex.inputs[0].index])) {
      strides[v] = std::move(*shared);
      owner[v] = owner[vertex.inputs[0].index];
    }
  }
  return owner;
}

/// When each vertex is computed, and whether it never has a tensor.
struct Fused {
  std::vector<std::size_t> runs_at;
  std::vector<bool> inside;
};

Fused fused_vertices(const Compiled& compiled) {
  Fused fused{std::vector<std::size_t>(compiled.graph.vertices.size()),
              std::vector<bool>(compiled.graph.vertices.size(), false)};
  for (std::size_t v = 0; v < fused.runs_at.size(); ++v) fused.runs_at[v] = v;
  for (const Fusion& fusion : compiled.fusions) {
    for (const std::size_t member : fusion.members) {
      fused.runs_at[member] = fusion.members.back();
      fused.inside[member] = true;
    }
    for (const std::size_t result : fusion.results) fused.inside[result] = false;
  }
  return fused;
}

}  // namespace

MemoryForecast forecast_memory(const Compiled& compiled, const LayoutBindings& layouts) {
  const EinGraph& graph = compiled.graph;
  const std::size_t count = graph.vertices.size();
  const std::vector<std::size_t> owner = memory_owners(graph, layouts);
  const Fused fused = fused_vertices(compiled);
  std::vector<std::size_t> last_use(fused.runs_at);
  for (std::size_t v = 0; v < count; ++v) {
    for (const VertexId input : graph.vertices[v].inputs) {
      std::size_t& last = last_use[owner[input.index]];
      last = std::max(last, fused.runs_at[v]);
    }
  }
  for (const VertexId output : graph.outputs) last_use[owner[output.index]] = count;
  for (std::size_t v = 0; v < count; ++v) {
    if (is_input(graph.vertices[v])) last_use[v] = count;
  }
  std::vector<std::vector<std::size_t>> made_at(count);
  std::vector<std::vector<std::size_t>> freed_after(count + 1);
  std::int64_t live = 0;
  for (std::size_t v = 0; v < count; ++v) {
    if (is_input(graph.vertices[v])) live = add_alive(live, graph.vertices[v]);  // there from the start
    if (owner[v] != v || fused.inside[v]) continue;
    if (!is_input(graph.vertices[v])) made_at[fused.runs_at[v]].push_back(v);
    freed_after[last_use[v]].push_back(v);
  }
  MemoryForecast forecast;
  for (std::size_t v = 0; v < count; ++v) {
    for (const std::size_t made : made_at[v]) live = add_alive(live, graph.vertices[made]);
    if (live > forecast.peak_bytes) {
      forecast.peak_bytes = live;
      forecast.peak_vertex = v;
    }
    for (const std::size_t freed : freed_after[v]) live -= bytes_of(graph.vertices[freed]);
  }
  return forecast;
}

void check_memory(const Compiled& compiled, const LayoutBindings& layouts,
                  const std::function<bool(const Vertex&)>& in_place) {
  const EinGraph& graph = compiled.graph;
  const MemoryForecast forecast = forecast_memory(compiled, layouts);
  std::int64_t needed = forecast.peak_bytes;
  for (const Vertex& vertex : graph.vertices) {
    if (is_input(vertex) && in_place(vertex)) needed -= bytes_of(vertex);
  }
  const auto available = available_memory();
  if (!available || needed <= *available) return;
  throw RunError(fmt::format("computing '{}' needs {} of memory, but only {} are free; use smaller extents",
                             graph.vertices[forecast.peak_vertex].name, bytes_text(static_cast<double>(needed)),
                             bytes_text(static_cast<double>(*available))));
}

std::optional<std::int64_t> peak_resident_bytes() {
  // Not getrusage: what it reports begins with the peak of the process that started this one.
  const auto kilobytes = number_after("/proc/self/status", "VmHWM:");
  return kilobytes ? std::optional(*kilobytes * 1024) : std::nullopt;
}

}  // namespace einrel
