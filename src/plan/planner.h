#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan_request.h"

namespace einrel {

/// A way to plan.
struct Planner {
  std::string name;
  std::string summary;  ///< one line
  std::function<Planned(const EinGraph& graph, const PlanRequest& request)> plan;
  bool tried_by_eindecomp = true;  ///< which then is never worse
};

/// Every planner, the default one first. To add one: a function in a file of its own, and a row in planner.cpp.
const std::vector<Planner>& all_planners();

/// One of these, or a product of schemes ("data:8 x tensor:4", see schemes.h). Throws UserError naming the nearest when
/// there is none of this name, or saying what is wrong with the product.
Planner planner_named(std::string_view name);

}  // namespace einrel
