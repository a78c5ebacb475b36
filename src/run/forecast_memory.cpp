#include "run/forecast_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "exec/memory/alive.h"
#include "exec/tasks/task_body.h"

namespace einrel {
namespace {

std::int64_t checked_bytes(const Shape& bound, DType dtype) {
  return checked_multiply(element_count(bound), static_cast<std::int64_t>(size_of(dtype)));
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

/// How inputs lie; nothing of those that tasks read into arrays.
using LayoutsOfInputs = std::vector<std::optional<ArrayLayout>>;

/// By task, whether it uses a part of an input where it lies.
std::vector<bool> uses_in_place(const TaskGraph& graph, const LayoutsOfInputs& inputs) {
  std::vector<bool> in_place;
  for (const std::optional<PartInPlace>& part : parts_in_place(graph, inputs)) in_place.push_back(part.has_value());
  return in_place;
}

/// Whether an input is one that the first step makes, for all of them.
bool is_brought(const PlannedTasks& tasks, std::size_t input) {
  return tasks.first && input >= tasks.first->first_input();
}

std::vector<HeldTensor> largest_first(const std::map<std::pair<std::size_t, HeldAs>, std::int64_t>& bytes) {
  std::vector<HeldTensor> tensors;
  for (const auto& [what, held] : bytes) tensors.push_back({what.first, what.second, held});
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const HeldTensor& a, const HeldTensor& b) { return a.bytes > b.bytes; });
  return tensors;
}

/// What is held from task to task.
class Held {
 public:
  /// `counted`: by input, whether it takes memory all the time.
  Held(const PlannedTasks& tasks, const LayoutsOfInputs& inputs, const std::vector<bool>& counted)
      : tasks_(tasks), counted_(counted), arrays_(tasks.graph, uses_in_place(tasks.graph, inputs)) {
    for (std::size_t i = 0; i < counted.size(); ++i) {
      const StoredRelation& input = tasks.graph.inputs[i];
      if (counted[i]) bytes_ = add_alive(bytes_, checked_bytes(input.bound, input.dtype), input.name);
    }
  }

  std::int64_t bytes() const { return bytes_; }

  /// The arrays of a task are there from now on.
  void make(std::size_t t) {
    const Task& task = tasks_.graph.tasks[t];
    if (std::holds_alternative<WriteOutput>(task.op)) arrays_.keep(task.reads.front());
    arrays_.make(t, [&](ArrayId made) {
      const TaskArray& array = tasks_.graph[made];
      bytes_ = add_alive(bytes_, checked_bytes(array.bound, array.dtype), name_of(tasks_, t));
    });
  }

  /// Those that no later one reads are gone.
  void free_after(std::size_t t) {
    arrays_.free_after(t, [&](ArrayId array) { bytes_ -= bytes_of(tasks_.graph[array]); });
  }

  /// Largest first.
  std::vector<HeldTensor> tensors() const {
    std::map<std::pair<std::size_t, HeldAs>, std::int64_t> bytes;
    for (std::size_t i = 0; i < counted_.size(); ++i) {
      if (!counted_[i]) continue;
      const bool is_copy = is_brought(tasks_, i);
      const StoredRelation& input = tasks_.graph.inputs[i];
      const std::size_t of = is_copy ? tasks_.first->brought.of[i - tasks_.first->first_input()] : i;
      const auto name = std::find(tasks_.names.begin(), tasks_.names.end(), tasks_.graph.inputs[of].name);
      const auto vertex = static_cast<std::size_t>(name - tasks_.names.begin());
      bytes[{vertex, is_copy ? HeldAs::copy : HeldAs::stored}] += checked_bytes(input.bound, input.dtype);
    }
    for (std::size_t a = 0; a < tasks_.graph.arrays.size(); ++a) {
      const std::optional<std::size_t>& maker = arrays_.maker(ArrayId{a});
      if (!maker) continue;
      const Task& task = tasks_.graph.tasks[*maker];
      const bool is_copy = std::holds_alternative<ReadInput>(task.op);
      const std::size_t vertex = tasks_.vertices[task.node.index].value_or(0);
      bytes[{vertex, is_copy ? HeldAs::copy : HeldAs::stored}] += bytes_of(tasks_.graph.arrays[a]);
    }
    return largest_first(bytes);
  }

 private:
  const PlannedTasks& tasks_;
  const std::vector<bool>& counted_;
  AliveArrays arrays_;
  std::int64_t bytes_ = 0;
};

SitePeak forecast(const PlannedTasks& tasks, const LayoutsOfInputs& inputs, const std::vector<bool>& counted) {
  Held held(tasks, inputs, counted);
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
  Held then(tasks, inputs, counted);
  for (std::size_t t = 0; t < last; ++t) {
    if (t > 0) then.free_after(t - 1);
    then.make(t);
  }
  peak.tensors = then.tensors();
  return peak;
}

/// Where a site holds more than all sites before.
struct TasksPeak {
  std::int64_t bytes = 0;
  std::size_t site = 0;
  std::size_t task = 0;  ///< when its arrays are there
};

/// Raises what sites and vertices hold to what is alive while tasks run in order.
TasksPeak raise_sites(const PlannedTasks& tasks, SitePeak& peak) {
  TasksPeak most;
  std::vector<std::int64_t> alive(peak.by_site.size(), 0);
  AliveArrays arrays(tasks.graph);
  for (std::size_t t = 0; t < tasks.graph.tasks.size(); ++t) {
    const std::optional<std::size_t> vertex = tasks.vertices[tasks.graph.tasks[t].node.index];
    arrays.make(t, [&](ArrayId made) {
      const TaskArray& array = tasks.graph[made];
      const auto site = static_cast<std::size_t>(array.site);
      alive[site] = add_alive(alive[site], checked_bytes(array.bound, array.dtype), name_of(tasks, t));
      peak.by_site[site] = std::max(peak.by_site[site], alive[site]);
      if (vertex) peak.by_vertex[*vertex] = std::max(peak.by_vertex[*vertex], alive[site]);
      if (alive[site] > most.bytes) most = {alive[site], site, t};
    });
    arrays.free_after(t, [&](ArrayId array) {
      alive[static_cast<std::size_t>(tasks.graph[array].site)] -= bytes_of(tasks.graph[array]);
    });
  }
  return most;
}

bool is_copied(const Task& task) {
  return std::holds_alternative<Send>(task.op) || std::holds_alternative<CopyBoxes>(task.op);
}

/// What is alive then on that site.
std::vector<HeldTensor> tensors_at(const PlannedTasks& tasks, const TasksPeak& most) {
  const auto ignore = [](ArrayId) {};
  AliveArrays arrays(tasks.graph);
  std::vector<std::size_t> tensor_of(tasks.graph.arrays.size(), 0);
  for (std::size_t t = 0; t <= most.task; ++t) {
    if (t > 0) arrays.free_after(t - 1, ignore);
    arrays.make(t, ignore);
    const Task& task = tasks.graph.tasks[t];
    for (const ArrayId made : task.makes) {
      tensor_of[made.index] = is_copied(task) && !task.reads.empty() ? tensor_of[task.reads.front().index]
                                                                     : tasks.vertices[task.node.index].value_or(0);
    }
  }
  std::map<std::pair<std::size_t, HeldAs>, std::int64_t> bytes;
  for (std::size_t a = 0; a < tasks.graph.arrays.size(); ++a) {
    const TaskArray& array = tasks.graph.arrays[a];
    const std::optional<std::size_t>& maker = arrays.maker(ArrayId{a});
    if (!maker || static_cast<std::size_t>(array.site) != most.site) continue;
    const HeldAs as = is_copied(tasks.graph.tasks[*maker]) ? HeldAs::copy : HeldAs::stored;
    bytes[{tensor_of[a], as}] += bytes_of(array);
  }
  return largest_first(bytes);
}

}  // namespace

SitePeak forecast_memory(const PlannedTasks& tasks, const LayoutBindings& layouts) {
  return forecast(tasks, input_layouts(tasks.graph, layouts), std::vector<bool>(tasks.graph.inputs.size(), true));
}

SitePeak forecast_memory(const PlannedTasks& tasks, const LayoutBindings& layouts,
                         const std::function<bool(const StoredRelation&)>& is_there) {
  LayoutsOfInputs inputs = input_layouts(tasks.graph, layouts);
  std::vector<bool> is_held(inputs.size(), false);
  for (const TaskState& state : tasks.states) {
    if (state.input) is_held[*state.input] = !is_there(tasks.graph.inputs[*state.input]);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_brought(tasks, i)) is_held[i] = true;
    if (!is_held[i] && !is_there(tasks.graph.inputs[i])) inputs[i].reset();
  }
  return forecast(tasks, inputs, is_held);
}

void raise_to_tasks(const PlannedTasks& tasks, SitePeak& peak) {
  const TasksPeak most = raise_sites(tasks, peak);
  if (most.bytes <= peak.bytes) return;
  peak.bytes = most.bytes;
  peak.site = most.site;
  peak.vertex = tasks.vertices[tasks.graph.tasks[most.task].node.index].value_or(0);
  peak.tensors = tensors_at(tasks, most);
  peak.held.clear();
}

}  // namespace einrel
