#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "run/algebra.h"

namespace einrel {

/// One operation as it is written, and what is known of its result.
struct OperationLine {
  std::string text;   ///< "t1 = bcast(A)"
  std::string note;   ///< the type of the relation (TRA), the placement of the tuples (IA)
  double floats = 0;  ///< moved by it
};

/// A plan in the implementation algebra.
struct IaLines {
  std::vector<OperationLine> operations;  ///< in the order of nodes_of, then what is put out
  PlanCost cost;
};

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

/// What a search made of a plan.
struct DerivationFacts {
  std::vector<DerivationLine> steps;
  std::size_t plans_seen = 0;
  bool complete = false;  ///< these are all that the rules reach
  IaLines found;
};

/// What text and JSON print of a program at the stations of the algebras.
struct AlgebraFacts {
  std::int64_t sites = 1;
  std::string planner;  ///< of `start`
  std::vector<OperationLine> tra;
  IaLines start;  ///< before any search
  std::optional<DerivationFacts> derivation;
  std::map<std::string, std::string> kernels;  ///< definitions of those that `tra` does not define
  double plan_seconds = 0;                     ///< that planning took

  const IaLines& found() const { return derivation ? derivation->found : start; }
};
/// "table-1" or "ia-rules", as users ask for them.
std::string planner_of(const AlgebraFacts& facts);
AlgebraFacts facts_of(const AlgebraPlan& plan);

}  // namespace einrel
