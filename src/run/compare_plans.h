#pragma once

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "plan/cost/cost.h"
#include "plan/cost/memory.h"
#include "plan/planners/planner.h"
#include "run/compile.h"

namespace einrel {

/// What labels are called in plans: those of all vertices but inputs, whose dimensions are numbered.
std::set<std::string> labels_of_plans(const EinGraph& graph);

/// What the cuts of planner kcut were compared with.
struct VerifiedCuts {
  std::optional<double> least_moved;  ///< elements, of search/tilings.h; nothing where there are too many ways
};

/// A plan of a program and what is known of it before it runs.
struct PlanReport {
  Plan plan;
  PlanCosts costs;
  std::vector<std::optional<double>> least;  ///< per vertex: bytes that it moves at least, see lower_bound.h
  SitePeak peak;                             ///< raised to what tasks hold, where those were made
  double seconds = 0;                        ///< that planning took
  /// Its sites are parts that one process computes one after the other, so that they fit into a limit of memory; costs
  /// are those of the sites that were asked for.
  bool is_in_parts = false;
  /// Of a plan that one program over a mesh says: the same planner's among all plans; nothing where it has none.
  std::optional<PlanCosts> unrestricted = std::nullopt;
  std::optional<VerifiedCuts> verified = std::nullopt;
};

/// Why a planner has no plan for a program.
struct PlanRefusal {
  std::string planner;
  std::string reason;
  std::string held = "";  ///< what its plan holds, line by line, where it has one that does not fit
};

/// Plans of a program side by side, and planners that have none.
struct PlanComparison {
  std::vector<PlanReport> plans;  ///< that which is shown first, and the others
  std::vector<PlanRefusal> refused;
};

/// Throws UserError unless the label that PlanRequest::batch names is one of the program's.
void check_batch(const EinGraph& graph, const PlanRequest& request);

/// The plan of one planner, or why it has none; its peak is what searches reckon with (peak_of), and request.memory a
/// limit of that. Throws UserError where there is no planner of this name.
std::variant<PlanReport, PlanRefusal> try_plan(const Compiled& compiled, const std::string& planner,
                                               const PlanRequest& request);
/// What is said where that is all that was asked for.
std::string refusal_text(const Compiled& compiled, const PlanRefusal& refusal);
/// The plan of one planner, as try_plan has it. Throws UserError with the reason where there is none, and for a label
/// to cut that the program does not have.
PlanReport plan_with(const Compiled& compiled, const std::string& planner, const PlanRequest& request);

/// Compares the cuts of plans by kcut with the best of all cuts at once.
void verify_cuts(const Compiled& compiled, PlanComparison& comparison);

/// Adds to plans that one program over a mesh says what the same planners' plans cost without that restriction.
void price_restriction(const Compiled& compiled, PlanComparison& comparison, const PlanRequest& request);

/// What is known of a plan that is there already.
PlanReport report_of(const Compiled& compiled, Plan plan, const PlanRequest& request);

}  // namespace einrel
