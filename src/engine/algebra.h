#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/compile.h"
#include "ia/search.h"
#include "plan/plan.h"
#include "tra/layout.h"
#include "tra/tra_expr.h"

namespace einrel {

/// A program at the stations of the algebras: over chunks, over sites, and what a search made of that.
struct AlgebraPlan {
  TraExpr tra;
  IaProgram ia;  ///< its plan is the one that the search found, without a search that of Table 1
  std::optional<Derivation> derivation;
  std::string planner;  ///< of the plan before any search
};

/// The program of the TRA for a compiled graph, with every vertex cut for that many sites (default_cuts).
TraExpr algebra_of(const Compiled& compiled, std::int64_t sites);

/// Compiles a program by Table 1 and, with `search`, looks for the plan that moves least. Throws UserError for a number
/// of sites or layouts that do not fit.
AlgebraPlan plan_algebra(TraExpr program, std::int64_t sites, const InputLayouts& layouts, bool search);

/// A plan in both algebras, without a search. Throws UserError as `lower` does.
AlgebraPlan algebra_of(const EinGraph& graph, const Plan& plan);

/// One operation as it is written, and what is known of its result.
struct OperationLine {
  std::string text;   ///< "t1 = bcast(A)"
  std::string note;   ///< the type of the relation (TRA), the placement of the tuples (IA)
  double floats = 0;  ///< moved by it
};
std::vector<OperationLine> tra_lines(const TraExpr& program);
std::vector<OperationLine> ia_lines(const AlgebraPlan& plan);

/// One step of the derivation: the operation before and after.
struct DerivationLine {
  std::string rule;
  std::string equation;                  ///< "join(bcast(X),Y) = join(X,bcast(Y))"
  std::string conditions;                ///< of the rule, which hold here
  std::vector<std::string> definitions;  ///< of relations that stand in the operation and were not shown before
  std::string from;
  std::string to;
  double floats = 0;  ///< that the whole plan then moves
};
std::vector<DerivationLine> derivation_lines(const AlgebraPlan& plan);

/// Both algebras, with types, placements and floats moved per operation; with a search, its derivation rule by rule.
std::string algebra_text(const AlgebraPlan& plan);

/// Every rule with what it says, when it applies, and its example before and after.
std::string rules_text();

}  // namespace einrel
