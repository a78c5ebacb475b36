#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "exec/job/job.h"
#include "plan/planners/plan_request.h"
#include "run/compile.h"

namespace einrel {

/// The program with some tensors computed again instead of kept, where only that lets it run within so many bytes of
/// this process, one vertex after the other. Nothing where it fits as it is, or not that way either: then chunks go to
/// disk. At most twice as many operations.
std::optional<Compiled> recomputed_in_process(const Compiled& compiled, std::int64_t limit, std::size_t threads);

/// The same where no plan that was found is within `request.memory` of each site.
std::optional<Compiled> recomputed_on_sites(const Compiled& compiled, const PlanRequest& request);

/// That of both which a run by a planner's plan needs: on the ranks of a job, if the default planner finds none that
/// fits, or on one site in this process. Nothing where there is no limit.
std::optional<Compiled> recomputed_for(const Compiled& compiled, const PlanRequest& request, std::size_t threads,
                                       const Job& job);

}  // namespace einrel
