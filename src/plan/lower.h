#pragma once

#include <optional>
#include <set>
#include <vector>

#include "ia/ia_program.h"
#include "plan/plan.h"
#include "tra/from_einsum.h"

namespace einrel {

/// A plan as programs over relations.
struct LoweredPlan {
  TraExpr tra;
  IaProgram ia;
  std::vector<std::optional<std::size_t>> vertices;  ///< per node of ia.store, the vertex that it is a part of
  std::set<IaId> once;  ///< the nodes that bring inputs that stay (staying_inputs.h) to where they are used
};

/// The implementation of a plan. Every operand is cut as its vertex is, and brought to all sites that compute with it:
/// along the labels that it has by its keys, along the others in copies. So the grid of sites chooses the join: of a
/// matrix multiply, copies of one operand are a broadcast join (BMM), none a cross-product join (CMM), of both a
/// replicated one (RMM). What is reduced over labels that are spread is first folded on each site, then on the site
/// that owns the result. Throws UserError for cuts that a label does not allow and where there are too many tuples.
LoweredPlan lower(const EinGraph& graph, const Plan& plan);

}  // namespace einrel
