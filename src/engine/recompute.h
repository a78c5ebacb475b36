#pragma once

#include <cstdint>

#include "engine/compile.h"
#include "exec/starpu/job.h"
#include "plan/plan_request.h"

namespace einrel {

/// The program with some tensors computed again instead of kept, where only that lets it run within so many bytes of
/// this process, one vertex after the other; else as it is: then chunks go to disk. At most twice as many operations.
/// O(tensors * vertices); a program that fits, or has no limit, costs next to nothing.
Compiled recomputed_in_process(const Compiled& compiled, std::int64_t limit, std::size_t threads);

/// The same for plans within `request.memory` of each site.
Compiled recomputed_on_sites(const Compiled& compiled, const PlanRequest& request);

}  // namespace einrel
