#pragma once

#include "plan/planners/schemes.h"
#include "plan/search/tilings.h"

namespace einrel {

/// Vertices of graphs that are cut beside other plans: these cuts look at all tensors at once, which takes 3 MB for so
/// many.
constexpr std::size_t most_cut_at_once = 2000;

/// SoyBean's cuts into the prime factors of the sites, those among the outermost links first, each the best for what
/// the ones before it left (tiling_cuts); or, where those count less in the end, the best ones that divide the batch
/// only, among so many groups of sites as any divisor of the sites says, and then never: data, model and all hybrid
/// parallelisms. All of them with the prime factors ascending and descending.
TilingCuts kcut_tilings(const EinGraph& graph, const PlanRequest& request);

/// SoyBean: sites along each label as often as kcut_tilings divided it. They are numbered as those of all plans are, or
/// by one cut after the other, the first one outermost, where that costs less.
Planned plan_kcut(const EinGraph& graph, const PlanRequest& request);

/// Model parallelism at its best: the same, but no vertex that can divide another label divides the batch
/// (batch_label).
SchemeGrids model_grids(const EinGraph& graph, const PlanRequest& request);

}  // namespace einrel
