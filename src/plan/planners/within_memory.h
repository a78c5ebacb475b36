#pragma once

#include <string>
#include <vector>

#include "plan/cost/memory.h"
#include "plan/planners/plan_request.h"

namespace einrel {

/// `plan` if it fits into `request.memory`, if need be with its inputs spread over all sites where that costs next to
/// nothing. Else the cheapest that fits of `others` and of those that searches find in which no
/// vertex alone needs more, and holding bytes costs something, each search making it dearer; where what they find does
/// not fit, it is changed where most is held. Each also with its inputs spread over all sites; what is found is
/// polished within the limit. Where none fits, a reason that says the smallest peak of all.
Planned within_memory(const EinGraph& graph, const PlanRequest& request, const std::vector<Plan>& others, Plan plan);

/// Why a plan with this peak does not fit: the vertex, what is needed and the limit; "" when it does.
std::string over_limit(const EinGraph& graph, const SitePeak& peak, std::int64_t limit);

}  // namespace einrel
