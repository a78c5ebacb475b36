#pragma once

#include <functional>

#include "plan/cost/memory.h"
#include "run/kernels.h"

namespace einrel {

/// What a run in this process holds if its tasks run in order and each array is freed after its last use. Inputs count
/// all the time: their owner, or the mapping of their file, outlives the run. Those that lie as `layouts` says may have
/// to be copied besides. Workspaces of kernels, and what lies between the vertices that one task computes, come on top.
/// O(tasks). Throws UserError where that takes more than 63 bits.
SitePeak forecast_memory(const PlannedTasks& tasks, const LayoutBindings& layouts = {});

/// The same beside inputs that are `there` already (mapped from their files, say), which cost nothing more. Of states
/// that are not, all is held from step to step; of other inputs, the parts that tasks read.
SitePeak forecast_memory(const PlannedTasks& tasks, const LayoutBindings& layouts,
                         const std::function<bool(const StoredRelation&)>& is_there);

/// Raises the peak of a plan, which knows whole vertices only, to what its tasks hold on the site that holds most when
/// they run in order, where that is more: chunks that are cut out or put together are there beside their pieces. Of
/// tasks whose sites have a memory each, or that have one site. Ranks keep to it, however far they run ahead.
void raise_to_tasks(const PlannedTasks& tasks, SitePeak& peak);

}  // namespace einrel
