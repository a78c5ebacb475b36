#pragma once

#include <cstdint>
#include <functional>

#include "plan/cost/cost.h"
#include "plan/search/search.h"

namespace einrel {

/// What polishing may do.
struct PolishOptions {
  CostKind kind = CostKind::seconds;
  Candidates candidates;  ///< ways to cut each vertex, without numbers of sites
  std::function<bool(const Plan&)> is_allowed = [](const Plan&) { return true; };
  std::int64_t changes_tried = 0;  ///< at most; not a time, so that the same is found on every machine
};

/// A plan in which no other candidate for one vertex, numbered in any order, makes the whole exactly cheaper, and none
/// with each of its neighbours changed to what suits it best; or what was found until so many changes were tried. Of
/// vertices that are alike, as in equal layers, one is tried for all. What the polish gains is costs_of before less
/// costs_of after.
Plan polished(const EinGraph& graph, const Plan& plan, const Machine& machine, const PolishOptions& options);

}  // namespace einrel
