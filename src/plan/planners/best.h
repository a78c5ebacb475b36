#pragma once

#include "plan/planners/plan_request.h"

namespace einrel {

/// How much a proof may look at, counted, so that plans are the same on every machine.
struct ProofEffort {
  double numbers = 5e5;  ///< in tables of costs, those of inputs counted several times, and in one of elimination's
  int passes = 100;
};

/// `start`, or a plan that takes fewer seconds, and how many seconds every plan takes at least that is made of
/// all_candidates of its vertices, numbered as OrderedCandidates says (Plan::at_least): the planning problem as a cost
/// network (one variable per vertex, what it costs alone, and what each tensor costs its producer and its readers
/// together), bounded by CostNetwork, with what cannot be cheaper left out, and the rest eliminated exactly where that
/// takes few enough numbers. `effort` says how much may be looked at.
Plan best_plan(const EinGraph& graph, const PlanRequest& request, const Plan& start, const ProofEffort& effort = {});

}  // namespace einrel
