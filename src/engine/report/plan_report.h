#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/source.h"
#include "engine/compile.h"
#include "engine/report/explain.h"
#include "plan/cost/cost.h"
#include "plan/cost/memory.h"
#include "plan/planner.h"
#include "plan/search/runner_up.h"

namespace einrel {

/// A plan of a program and what is known of it before it runs.
struct PlanReport {
  Plan plan;
  PlanCosts costs;
  std::vector<std::optional<double>> least;  ///< per vertex: bytes that it moves at least, see lower_bound.h
  SitePeak peak;
  double seconds = 0;  ///< that planning took
};

/// Why a planner has no plan for a program.
struct PlanRefusal {
  std::string planner;
  std::string reason;
};

/// Plans of a program side by side, and planners that have none.
struct PlanComparison {
  std::vector<PlanReport> plans;  ///< one at least, that which is shown first
  std::vector<PlanRefusal> refused;
};

/// The plan of one planner, or why it has none. Throws UserError where there is no planner of this name.
std::variant<PlanReport, PlanRefusal> try_plan(const Compiled& compiled, const std::string& planner,
                                               const PlanRequest& request);
/// What is said where that is all that was asked for.
std::string refusal_text(const Compiled& compiled, const PlanRefusal& refusal);
/// The plan of one planner. Throws UserError with the reason where it has none.
PlanReport plan_with(const Compiled& compiled, const std::string& planner, const PlanRequest& request);

/// The plan that is given, if any, and those of planners. Throws UserError with all reasons where there is no plan at
/// all.
PlanComparison compare_plans(const Compiled& compiled, std::optional<Plan> given,
                             const std::vector<std::string>& planners, const PlanRequest& request);

/// What is known of a plan that is there already.
PlanReport report_of(const Compiled& compiled, Plan plan, const PlanRequest& request);

/// For people: a summary of the first plan; per vertex how it is cut, what moves, bytes and seconds, equal layers once;
/// of several plans, their costs and peaks side by side. In full every vertex stands by itself, with its kernel, and
/// why the second best way to cut it lost. Lines are those of `source`.
std::string plans_text(const Compiled& compiled, const PlanComparison& comparison, const PlanRequest& request,
                       const SourceText& source, Detail detail);

/// The same as one JSON object: what `explain_json` says of the program, and the plans.
std::string plans_json(const Compiled& compiled, const PlanComparison& comparison, const PlanRequest& request);

/// A plan in both algebras. Throws UserError where that has too many tuples.
std::string lowered_text(const Compiled& compiled, const Plan& plan);

/// The vertices that two plans compute differently, and what the difference costs.
std::string plan_difference_text(const Compiled& compiled, const PlanReport& first, const PlanReport& second);

}  // namespace einrel
