#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "exec/tasks/task_graph.h"

namespace einrel {

/// Which arrays are in memory while tasks run one after the other, each from the task that makes it to the last that
/// reads it: the one walk of all who forecast memory.
class AliveArrays {
 public:
  /// Told of each array that gets memory of its own, and of each whose memory can be had again.
  using Told = std::function<void(ArrayId)>;

  /// By task, whether what it makes lies in memory that is there already; of none, where nothing is said.
  explicit AliveArrays(const TaskGraph& graph, std::vector<bool> in_place = {});

  /// Those that a task makes, as it begins. What takes over another's memory gets none.
  void make(std::size_t task, const Told& gets_memory);
  /// Those that no later task reads.
  void free_after(std::size_t task, const Told& gives_back);
  /// Never given back: who reads an output when all is done.
  void keep(ArrayId array) { is_kept_[array.index] = true; }
  /// The task that made it, while it is alive.
  const std::optional<std::size_t>& maker(ArrayId array) const { return maker_[array.index]; }

 private:
  const TaskGraph& graph_;
  LastUses freed_;
  std::vector<bool> in_place_;
  std::vector<bool> is_kept_;
  std::vector<std::optional<std::size_t>> maker_;
};

/// The most of an amount of arrays that is alive at a time on one site, or, where sites share memory, on all together.
/// `at_once`: so many tasks from the first that is not done on may be under way.
std::int64_t most_alive(const TaskGraph& graph, const std::function<std::int64_t(const TaskArray&)>& amount,
                        std::size_t at_once = 1);

/// The same of bytes. What lies outside (inputs that are used where they lie) counts as if it were read into arrays.
std::int64_t most_live_bytes(const TaskGraph& graph, std::size_t at_once = 1);

}  // namespace einrel
