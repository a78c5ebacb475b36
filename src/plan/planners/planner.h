#pragma once

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "plan/planners/plan_request.h"

namespace einrel {

/// A way to plan.
struct Planner {
  std::string name;
  std::string summary;  ///< one line
  std::function<Planned(const EinGraph& graph, const PlanRequest& request)> plan;
  /// Of graphs with no more vertices eindecomp looks at its plan, and then is never worse.
  std::size_t tried_up_to = std::numeric_limits<std::size_t>::max();
};

/// Whether a planner of this name starts from the plans of others, PlanRequest::beside among them.
bool starts_from_others(std::string_view name);

/// Every planner, the default one first. To add one: a function in a file of its own, and a row in planner.cpp.
const std::vector<Planner>& all_planners();

/// One of these, or a product of schemes ("data:8 x tensor:4", see schemes.h). Throws UserError naming the nearest when
/// there is none of this name, or saying what is wrong with the product.
Planner planner_named(std::string_view name);

}  // namespace einrel
