#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "plan/cost/cost.h"
#include "plan/search/search.h"

namespace einrel {

/// Which plans may be taken; all of them where it is empty.
using AllowedPlans = std::function<bool(const Plan&)>;

/// How many changes of plans for so many sites take well below a second to try: not a time, so that the same is found
/// on every machine.
constexpr std::int64_t changes_to_try(std::int64_t sites) {
  constexpr std::int64_t looks = 2'000'000;  // at a site, for a change that is tried
  constexpr std::int64_t fewest_sites = 10;  // that a change costs as much as
  return looks / std::max(sites, fewest_sites);
}

/// What polishing may do.
struct PolishOptions {
  CostKind kind = CostKind::seconds;
  Candidates candidates;  ///< ways to cut each vertex, without numbers of sites
  AllowedPlans is_allowed = {};
  std::int64_t changes_tried = 0;  ///< at most, of changes_to_try
};

/// A plan in which no other candidate for one vertex, numbered in any order, makes the whole exactly cheaper, no input
/// that lies elsewhere does (input_plans), and no candidate with each of its neighbours changed to what suits it best;
/// or what was found until so many changes were tried. Of
/// vertices that are alike, as in equal layers, one is tried for all. What the polish gains is costs_of before less
/// costs_of after.
Plan polished(const EinGraph& graph, const Plan& plan, const Machine& machine, const PolishOptions& options);

}  // namespace einrel
