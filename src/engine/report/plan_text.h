#pragma once

#include <string>

#include "base/source.h"
#include "engine/compare_plans.h"
#include "engine/report/explain.h"

namespace einrel {

/// For people: a summary of the first plan; per vertex how it is cut, what moves, bytes and seconds, equal layers once;
/// of several plans, their costs and peaks side by side. In full every vertex stands by itself, with its kernel, and
/// why the second best way to cut it lost. Lines are those of `source`.
std::string plans_text(const Compiled& compiled, const PlanComparison& comparison, const PlanRequest& request,
                       const SourceText& source, Detail detail);

/// The vertices that two plans compute differently, and what the difference costs.
std::string plan_difference_text(const Compiled& compiled, const PlanReport& first, const PlanReport& second);

}  // namespace einrel
