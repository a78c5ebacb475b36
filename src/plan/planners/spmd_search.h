#pragma once

#include <vector>

#include "plan/planners/plan_request.h"

namespace einrel {

/// The cheapest plan found of those that one program over a mesh says (plan/spmd.h), for the cost that is asked for. Of
/// each vertex 24 to 128 ways, sites numbered, that cost least alone are values of one variable; the sum of what they
/// cost alone and beside each other is made least exactly, as far as tables stay small (elimination.h), then vertex by
/// vertex by the exact cost of the whole. None of `others` that is such a plan and fits is cheaper; a limit of memory
/// leaves out plans that were found, no more. Or why there is none.
Planned spmd_plan(const EinGraph& graph, const PlanRequest& request, const std::vector<Plan>& others);

}  // namespace einrel
