#pragma once

#include "plan/planners/plan_request.h"

namespace einrel {

// What people do by hand to any graph, for comparison; what they call data parallelism and so on is in schemes.h.

/// Everything on one site.
Planned plan_single(const EinGraph& graph, const PlanRequest& request);

/// The two longest labels of every result into about as many parts each (EinDecomp, section 9: SQRT); a product of
/// square matrices on a cube of sites in three dimensions.
Planned plan_sqrt(const EinGraph& graph, const PlanRequest& request);

/// Every label into chunks of at most 1000, spread over the sites.
Planned plan_all_tile(const EinGraph& graph, const PlanRequest& request);

}  // namespace einrel
