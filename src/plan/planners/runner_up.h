#pragma once

#include <optional>
#include <vector>

#include "plan/cost/cost.h"
#include "plan/plan.h"

namespace einrel {

/// The second best way to plan one vertex beside the rest of a plan, and why it is not better.
struct RunnerUp {
  VertexPlan plan;  ///< without numbers of sites
  /// That the whole plan would cost. Below 0 of a plan that was given, or is another planner's and almost as good; and
  /// where the better estimate did not come true with numbers of sites.
  double more = 0;
  /// Where most of that comes from: producer and consumer of the tensor that would cost more to move, or the vertex
  /// twice where computing or reducing it would.
  std::size_t producer = 0;
  std::size_t consumer = 0;
  double more_there = 0;
};

/// Per vertex; nothing for inputs, for vertices with one candidate only, and of plans whose vertices have several parts
/// on a site, but for pieces of what they reduce (whole_pieces.h), which count as one. By the model that searches use,
/// which takes the best numbering of sites.
std::vector<std::optional<RunnerUp>> runners_up(const EinGraph& graph, const Plan& plan, const Machine& machine,
                                                CostKind kind);

}  // namespace einrel
