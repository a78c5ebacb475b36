#pragma once

#include "plan/planner.h"

namespace einrel {

// What people do by hand, for comparison. Each gives a plan for every graph, but for what it says.

/// Everything on one site.
Planned plan_single(const EinGraph& graph, const PlanRequest& request);

/// One label, cut over as many sites as it is long; vertices without it are computed on one site. Refused when the
/// graph has no such label or it is nowhere cut.
Planned plan_data(const EinGraph& graph, const PlanRequest& request);

/// The two longest labels of every result into about as many parts each (EinDecomp, section 9: SQRT); a product of
/// square matrices on a cube of sites in three dimensions.
Planned plan_sqrt(const EinGraph& graph, const PlanRequest& request);

/// Every label into chunks of at most 1000, spread over the sites.
Planned plan_all_tile(const EinGraph& graph, const PlanRequest& request);

}  // namespace einrel
