#pragma once

#include <string>
#include <vector>

#include "ia/rules/rule.h"

namespace einrel {

/// A plan with an operation replaced.
struct Alternative {
  IaId by;  ///< what stands there now
  IaPlan plan;
};
/// What applying a rule at a place gives: plans, or why there are none.
struct Rewritten {
  std::vector<Alternative> alternatives;
  std::string reason;
};

/// Applies a rule to the operation `at` of a plan, for all its users. A rule whose conditions hold may still not apply
/// where its context needs tuples to lie as they did; then the reason names the operation that could not run.
Rewritten apply(const Rule& rule, IaStore& store, const IaPlan& plan, IaId at);

struct ApplicableRule {
  const Rule* rule = nullptr;
  IaId at;
  std::vector<Alternative> alternatives;
};
/// The rules of one kind that apply to the operation `at` of a plan.
std::vector<ApplicableRule> applicable_rules(IaStore& store, const IaPlan& plan, IaId at, SearchUse use);

}  // namespace einrel
