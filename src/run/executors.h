#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "exec/executors/executor.h"
#include "exec/job/job.h"
#include "exec/memory/spill.h"

namespace einrel {

/// All the memory there is.
struct Unlimited {};

/// Within a limit that has room for everything while one task runs after the other; of a rank, while its own do.
struct InOrder {
  std::string folder;  ///< where states lie that the system may keep on the disk
};

/// Within a limit: chunks go to disk and come back.
struct Spilling {
  std::int64_t bytes = 0;  ///< for those that stay
  Spill to;
};

using RunMemory = std::variant<Unlimited, InOrder, Spilling>;

inline bool is_limited(const RunMemory& memory) { return !std::holds_alternative<Unlimited>(memory); }
/// Where states are mapped from within a limit: the folder of KeptState.
std::optional<std::string> states_folder(const RunMemory& memory);

/// What tasks may use in this process.
struct RunResources {
  std::size_t threads = 1;
  RunMemory memory = {};
  std::int64_t most_bytes = any_bytes;  ///< TaskBindings::most_bytes
};

/// What the arrays of tasks that run side by side in this process take at most: as if twice as many tasks as threads
/// were under way at all times, so that no thread waits for another; no more than there is, where tasks that run one
/// after the other need less. 0 of tasks that do so anyway, and any number of those whose arrays come and go.
std::int64_t most_bytes_in_process(const TaskGraph& graph, const RunResources& resources);

/// What runs these tasks soonest: StarPU on several ranks and where chunks come and go; else one task after the other,
/// each on all threads, or side by side, one on each thread.
std::unique_ptr<Executor> executor_for(const TaskGraph& graph, const RunResources& resources, const Job& job);

}  // namespace einrel
