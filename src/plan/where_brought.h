#pragma once

#include <set>
#include <string>

#include "einsum/graph/ein_graph.h"
#include "plan/placed_inputs.h"
#include "plan/plan.h"

namespace einrel {

/// Where a plan has inputs once they are brought, so that another program can take them from there: in the layout in
/// which sites hold most of one, as it lies or as a reader takes it. By their names, along numbers of dimensions;
/// without states, those of `fed`, and what no digits say.
GivenPlacements where_brought(const EinGraph& graph, const Plan& plan, const std::set<std::string>& fed);

}  // namespace einrel
