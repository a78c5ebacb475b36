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

/// The best other ways to cut one of several vertices that are alike, as those of equal layers are.
struct OtherCuts {
  std::vector<std::size_t> vertices;  ///< ascending
  std::vector<RunnerUp> best;         ///< of the first of them, the cheapest first; each cut once
};

/// Of all vertices that are computed, at most so many ways for each, of a single program's those that it can say; none
/// where a vertex can be cut in no other way. Of many vertices or sites some of the ways are looked at, those first
/// that compute fastest.
std::vector<OtherCuts> other_cuts(const EinGraph& graph, const Plan& plan, const Machine& machine, CostKind kind,
                                  std::size_t most);

/// The best other way for each vertex; nothing for inputs, and where there is none.
std::vector<std::optional<RunnerUp>> runners_up(const EinGraph& graph, const Plan& plan,
                                                const std::vector<OtherCuts>& others);

}  // namespace einrel
