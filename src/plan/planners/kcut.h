#pragma once

#include "plan/planners/schemes.h"

namespace einrel {

/// SoyBean: sites along each label as often as tiling_cuts divided it (search/tilings.h).
Planned plan_kcut(const EinGraph& graph, const PlanRequest& request);

/// Model parallelism at its best: the same, but no vertex that has another label divides the batch (batch_label).
SchemeGrids model_grids(const EinGraph& graph, const PlanRequest& request);

}  // namespace einrel
