#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "machine/machine.h"
#include "plan/cost/cost.h"
#include "plan/plan.h"

namespace einrel {

/// What a plan is asked for.
struct PlanRequest {
  std::int64_t sites = 1;
  Machine machine;
  CostKind cost = CostKind::seconds;  ///< what `eindecomp` makes least
  std::optional<std::string> batch;   ///< the label that is cut for data parallelism; else the first of the first input
  std::optional<std::int64_t> memory = std::nullopt;  ///< bytes that `eindecomp` may use on a site, see memory.h
  std::vector<Plan> beside = {};  ///< other plans that were asked for: `eindecomp` starts from them, too
  bool spmd = false;              ///< only plans that a single program over one mesh of all sites says (plan/spmd.h)
  bool is_for_parts = false;      ///< sites stand for parts that share a memory: on fewer, parts would only be larger
  bool operator==(const PlanRequest&) const = default;
};

/// A plan, or why the planner has none for this graph.
using Planned = std::variant<Plan, std::string>;

}  // namespace einrel
