#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "plan/cost.h"
#include "plan/machine.h"
#include "plan/plan.h"

namespace einrel {

/// What a plan is asked for.
struct PlanRequest {
  std::int64_t sites = 1;
  Machine machine;
  CostKind cost = CostKind::seconds;  ///< what `eindecomp` makes least
  std::optional<std::string> batch;   ///< the label that is cut for data parallelism; else the first of the first input
  std::optional<std::int64_t> memory = std::nullopt;  ///< bytes that `eindecomp` may use on a site, see memory.h
};

/// A plan, or why the planner has none for this graph.
using Planned = std::variant<Plan, std::string>;

/// A way to plan.
struct Planner {
  std::string name;
  std::string summary;  ///< one line
  std::function<Planned(const EinGraph& graph, const PlanRequest& request)> plan;
};

/// Every planner, the default one first. To add one: a function in a file of its own, and a row in planner.cpp.
const std::vector<Planner>& all_planners();

/// One of these, or a product of schemes ("data:8 x tensor:4", see schemes.h). Throws UserError naming the nearest when
/// there is none of this name, or saying what is wrong with the product.
Planner planner_named(std::string_view name);

}  // namespace einrel
