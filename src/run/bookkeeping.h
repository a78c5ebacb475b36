#pragma once

#include <cstdint>

#include "run/session.h"

namespace einrel {

/// What a process takes beside what is in arrays, in bytes, as measured, without the first MiB, which is its own. The
/// program's text and what planning tries are included, as far as they grow with the number of statements and tasks.
struct Bookkeeping {
  std::int64_t planning = 0;  ///< until tasks run, when there are no arrays yet
  std::int64_t running = 0;   ///< beside arrays
};

/// Where tasks run one after the other in the memory of the process.
Bookkeeping bookkeeping_in_order(const PlannedTasks& tasks);

/// Where StarPU keeps the arrays: of the rank that has most of them alive at a time.
Bookkeeping bookkeeping_by_starpu(const PlannedTasks& tasks);

/// What a limit leaves for arrays; 0 where nothing runs within it.
std::int64_t left_for_arrays(std::int64_t limit, const Bookkeeping& bookkeeping);

/// The limit within which something is left.
std::int64_t most_of(const Bookkeeping& bookkeeping);

}  // namespace einrel
