#pragma once

#include "plan/planners/schemes.h"

namespace einrel {

/// Vertices of graphs that are cut beside other plans: these cuts look at all tensors at once, which takes 3 MB for so
/// many.
constexpr std::size_t most_cut_at_once = 2000;

/// SoyBean: sites along each label as often as tiling_cuts divided it (search/tilings.h).
Planned plan_kcut(const EinGraph& graph, const PlanRequest& request);

/// Model parallelism at its best: the same, but no vertex that has another label divides the batch (batch_label).
SchemeGrids model_grids(const EinGraph& graph, const PlanRequest& request);

}  // namespace einrel
