#include "engine/memory.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <utility>

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

/// What is held from task to task, beside inputs.
class Held {
 public:
  Held(const PlannedTasks& tasks, const LayoutBindings& layouts)
      : tasks_(tasks),
        freed_(tasks.graph),
        in_place_(parts_in_place(tasks.graph, input_layouts(tasks.graph, layouts))),
        alive_(tasks.graph.arrays.size()),
        is_output_(tasks.graph.arrays.size(), false) {
    for (const StoredRelation& input : tasks.graph.inputs)
      bytes_ = add_alive(bytes_, checked_bytes(input.bound, input.dtype), input.name);
  }

  /// With inputs.
  std::int64_t bytes() const { return bytes_; }

  /// The arrays of a task are there from now on.
  void make(std::size_t t) {
    const Task& task = tasks_.graph.tasks[t];
    if (std::holds_alternative<WriteOutput>(task.op)) is_output_[task.reads.front().index] = true;
    if (in_place_[t]) return;
    const std::optional<ArrayId> taken = overwritten(task);
    if (taken) alive_[taken->index].reset();
    for (const ArrayId made : task.makes) {
      const TaskArray& array = tasks_.graph[made];
      alive_[made.index] = t;
      if (!taken) bytes_ = add_alive(bytes_, checked_bytes(array.bound, array.dtype), name_of(tasks_, t));
    }
  }

  /// Those that no later one reads are gone.
  void free_after(std::size_t t) {
    for (const ArrayId array : freed_[t]) {
      if (!alive_[array.index] || is_output_[array.index]) continue;
      alive_[array.index].reset();
      bytes_ -= bytes_of(tasks_.graph[array]);
    }
  }

  /// Largest first.
  std::vector<HeldTensor> tensors() const {
    std::map<std::pair<std::size_t, HeldAs>, std::int64_t> bytes;
    for (const StoredRelation& input : tasks_.graph.inputs) {
      const auto name = std::find(tasks_.names.begin(), tasks_.names.end(), input.name);
      const auto vertex = static_cast<std::size_t>(name - tasks_.names.begin());
      bytes[{vertex, HeldAs::stored}] = checked_bytes(input.bound, input.dtype);
    }
    for (std::size_t a = 0; a < alive_.size(); ++a) {
      if (!alive_[a]) continue;
      const Task& task = tasks_.graph.tasks[*alive_[a]];
      const bool is_copy = std::holds_alternative<ReadInput>(task.op);
      const std::size_t vertex = tasks_.vertices[task.node.index].value_or(0);
      bytes[{vertex, is_copy ? HeldAs::copy : HeldAs::stored}] += bytes_of(tasks_.graph.arrays[a]);
    }
    std::vector<HeldTensor> tensors;
    for (const auto& [what, held] : bytes) tensors.push_back({what.first, what.second, held});
    std::stable_sort(tensors.begin(), tensors.end(),
                     [](const HeldTensor& a, const HeldTensor& b) { return a.bytes > b.bytes; });
    return tensors;
  }

 private:
  const PlannedTasks& tasks_;
  LastUses freed_;
  std::vector<std::optional<PartInPlace>> in_place_;
  std::vector<std::optional<std::size_t>> alive_;  // the task that made it
  std::vector<bool> is_output_;
  std::int64_t bytes_ = 0;
};

}  // namespace

SitePeak forecast_memory(const PlannedTasks& tasks, const LayoutBindings& layouts) {
  Held held(tasks, layouts);
  SitePeak peak;
  peak.bytes = held.bytes();
  peak.by_vertex.assign(tasks.names.size(), 0);
  std::size_t last = 0;  // tasks until the peak
  for (std::size_t t = 0; t < tasks.graph.tasks.size(); ++t) {
    held.make(t);
    const std::optional<std::size_t> vertex = tasks.vertices[tasks.graph.tasks[t].node.index];
    if (vertex) peak.by_vertex[*vertex] = std::max(peak.by_vertex[*vertex], held.bytes());
    if (held.bytes() > peak.bytes) {
      peak.bytes = held.bytes();
      peak.vertex = vertex.value_or(0);
      last = t + 1;
    }
    held.free_after(t);
  }
  peak.by_site = {peak.bytes};
  Held then(tasks, layouts);
  for (std::size_t t = 0; t < last; ++t) {
    if (t > 0) then.free_after(t - 1);
    then.make(t);
  }
  peak.tensors = then.tensors();
  return peak;
}

void check_memory(const PlannedTasks& tasks, const LayoutBindings& layouts,
                  const std::function<bool(const StoredRelation&)>& in_place, std::string_view limit) {
  const SitePeak peak = forecast_memory(tasks, layouts);
  std::int64_t needed = peak.bytes;
  for (const StoredRelation& input : tasks.graph.inputs) {
    if (in_place(input)) needed -= checked_bytes(input.bound, input.dtype);
  }
  check_available(needed, fmt::format("computing '{}'", tasks.names[peak.vertex]), limit);
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
