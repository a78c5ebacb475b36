#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ia/search.h"
#include "plan/plan.h"
#include "run/compile.h"
#include "tra/layout.h"
#include "tra/tra_expr.h"

namespace einrel {

/// A program at the stations of the algebras: over chunks, over sites, and what a search made of that.
struct AlgebraPlan {
  TraExpr tra;
  IaProgram ia;  ///< its plan is the one that the search found, without a search that of Table 1
  std::optional<Derivation> derivation;
  std::string planner;  ///< of the plan before any search
  double seconds = 0;   ///< that compiling and searching took
  PassOptions pass_options = {};
};
/// The plans that there were: before the search, and after each of its steps.
std::vector<IaPlan> plans_of(const AlgebraPlan& plan);

/// The program of the TRA for a compiled graph, with every vertex cut for that many sites (default_cuts).
TraExpr algebra_of(const Compiled& compiled, std::int64_t sites);

/// Compiles a program by Table 1 and, with `search`, looks for the plan that moves least. Throws UserError for a number
/// of sites or layouts that do not fit.
AlgebraPlan plan_algebra(TraExpr program, std::int64_t sites, const InputLayouts& layouts, bool search);

/// The same for a compiled graph, cut for that many sites. Throws UserError where that makes too many chunks.
AlgebraPlan plan_algebra(const Compiled& compiled, std::int64_t sites, bool search);

/// A plan in both algebras, without a search. Throws UserError as `lower` does.
AlgebraPlan algebra_of(const EinGraph& graph, const Plan& plan);

}  // namespace einrel
