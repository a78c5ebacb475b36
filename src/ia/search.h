#pragma once

#include <string>
#include <vector>

#include "ia/rules/rule.h"

namespace einrel {

/// One step of a proof: `rule` put `by` in the place of the operation `at` of the plan before; the plan is now this
/// one.
struct DerivationStep {
  const Rule* rule = nullptr;
  IaId at;
  IaId by;
  IaPlan plan;
  PlanCost cost;
};

/// How the search came to the plan that it found.
struct Derivation {
  IaPlan start;
  PlanCost start_cost;
  std::vector<DerivationStep> steps;
  std::size_t plans_seen = 0;
  bool complete = false;  ///< every plan that the rules reach was seen

  const IaPlan& plan() const { return steps.empty() ? start : steps.back().plan; }
  const PlanCost& cost() const { return steps.empty() ? start_cost : steps.back().cost; }
};

/// How far a search goes. Counted, not timed, so that a program always gets the same plan.
struct SearchBudget {
  std::size_t plans = 1000;        ///< different plans
  std::size_t tuples = 3'000'000;  ///< tuples of relations inferred on the way: a few seconds at most
};

/// The `ia-rules` search: from `start`, repeatedly rewrites the cheapest plan not yet tried by every rule at every
/// place, until the budget is spent or nothing moves. When that gives a better plan than all before, the search goes on
/// from there at once and comes back to the others later: choices in independent parts of a program are then made one
/// after the other, not in all combinations. A plan is better when it moves fewer floats, or as many with less work on
/// the busiest site. Moving everything to one site would often be cheapest, so plans whose busiest site has more than
/// twice what it would have in `start`, were each of its operations spread evenly, come after all others, and after
/// those the plans where it has more than in `start` as it is.
Derivation cheapest_plan(IaStore& store, const IaPlan& start, const SearchBudget& budget = {});

}  // namespace einrel
