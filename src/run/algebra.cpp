#include "run/algebra.h"

#include <fmt/format.h>

#include <chrono>

#include "base/error.h"
#include "base/text.h"
#include "einsum/passes/join_split.h"
#include "ia/from_tra.h"
#include "plan/lower.h"
#include "tra/from_einsum.h"

namespace einrel {

TraExpr algebra_of(const Compiled& compiled, std::int64_t sites) {
  const EinGraph graph = split_joins(compiled.graph, 2);
  return from_einsum(graph, default_cuts(graph, sites));
}

std::vector<IaPlan> plans_of(const AlgebraPlan& plan) {
  if (!plan.derivation) return {plan.ia.plan};
  std::vector<IaPlan> plans{plan.derivation->start};
  for (const DerivationStep& step : plan.derivation->steps) plans.push_back(step.plan);
  return plans;
}

AlgebraPlan plan_algebra(TraExpr program, std::int64_t sites, const InputLayouts& layouts, bool search) {
  const auto start = std::chrono::steady_clock::now();
  AlgebraPlan plan{std::move(program), {IaStore(1), {}, {}}, std::nullopt, "Table 1"};
  plan.ia = compile_by_table_1(plan.tra, sites, layouts);
  if (search) {
    plan.derivation = cheapest_plan(plan.ia.store, plan.ia.plan);
    plan.ia.plan = plan.derivation->plan();
  }
  plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

AlgebraPlan plan_algebra(const Compiled& compiled, std::int64_t sites, bool search) {
  try {
    AlgebraPlan plan = plan_algebra(algebra_of(compiled, sites), sites, {}, search);
    plan.pass_options = compiled.pass_options;
    return plan;
  } catch (const UserError& error) {  // the user has chosen the number of sites, not the chunks that follow from it
    throw UserError(fmt::format("{}, cut for {} sites: {}\n  help: fewer sites make fewer chunks",
                                printable(compiled.name), sites, error.what()));
  }
}

AlgebraPlan algebra_of(const EinGraph& graph, const Plan& plan) {
  LoweredPlan lowered = lower(graph, plan);
  return {std::move(lowered.tra), std::move(lowered.ia), std::nullopt, plan.planner};
}

}  // namespace einrel
