#pragma once

#include <vector>

#include "plan/planners/plan_request.h"

namespace einrel {

/// The cheapest plan found of those that one program over a mesh says (plan/spmd.h), for the cost and within the memory
/// that is asked for. All ways to compute each vertex, or to lie, sites numbered, are values of one variable; the sum
/// of what they cost alone and beside each other is made least exactly, as far as tables stay small (elimination.h),
/// and then vertex by vertex by the exact cost of the whole. None of `others` that is such a plan and fits is cheaper.
/// Or why there is none.
Planned spmd_plan(const EinGraph& graph, const PlanRequest& request, const std::vector<Plan>& others);

}  // namespace einrel
