#include "engine/algebra.h"

#include "ia/from_tra.h"
#include "plan/lower.h"
#include "tra/from_einsum.h"

namespace einrel {

TraExpr algebra_of(const Compiled& compiled, std::int64_t sites) {
  return from_einsum(compiled.graph, default_cuts(compiled.graph, sites));
}

AlgebraPlan plan_algebra(TraExpr program, std::int64_t sites, const InputLayouts& layouts, bool search) {
  AlgebraPlan plan{std::move(program), {IaStore(1), {}, {}}, std::nullopt, "Table 1"};
  plan.ia = compile_by_table_1(plan.tra, sites, layouts);
  if (search) {
    plan.derivation = cheapest_plan(plan.ia.store, plan.ia.plan);
    plan.ia.plan = plan.derivation->plan();
  }
  return plan;
}

AlgebraPlan algebra_of(const EinGraph& graph, const Plan& plan) {
  LoweredPlan lowered = lower(graph, plan);
  return {std::move(lowered.tra), std::move(lowered.ia), std::nullopt, plan.planner};
}

}  // namespace einrel
