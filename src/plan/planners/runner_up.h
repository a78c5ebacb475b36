#pragma once

#include <optional>
#include <vector>

#include "plan/cost/cost.h"
#include "plan/plan.h"

namespace einrel {

/// The best other way to cut one vertex beside the rest of a plan, and why it is not better.
struct RunnerUp {
  VertexPlan plan;
  /// That the whole plan would cost, exactly, with the inputs that the vertex reads where they lie best then. Below 0
  /// of a plan that was given, or is another planner's.
  double more = 0;
  /// Where most of that comes from: producer and consumer of the tensor that would cost more to move, or the vertex
  /// twice where computing or reducing it would.
  std::size_t producer = 0;
  std::size_t consumer = 0;
  double more_there = 0;
};

/// Per vertex; nothing for inputs, and for vertices that can be cut in no other way. Vertices of equal layers are
/// looked at once.
std::vector<std::optional<RunnerUp>> runners_up(const EinGraph& graph, const Plan& plan, const Machine& machine,
                                                CostKind kind);

}  // namespace einrel
