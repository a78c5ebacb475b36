#pragma once

#include <cstddef>
#include <vector>

#include "run/compare_plans.h"

namespace einrel {

/// Consecutive vertices that come several times, alike but for names: the layers of a model.
struct FoldedGroup {
  std::vector<std::size_t> vertices;  ///< of the first time, inputs left out
  std::size_t times = 0;
  std::size_t last = 0;  ///< the last vertex of the last time
};

/// A graph with equal layers shown once.
struct Folding {
  std::vector<FoldedGroup> groups;              ///< in the order of the graph
  std::vector<std::size_t> shown;               ///< per vertex: itself, or that of the first time which stands for it
  std::vector<std::vector<std::size_t>> alike;  ///< per vertex that is shown: all that it stands for, itself first
};

/// Folds vertices that compute alike (names of tensors, labels and scalars aside, and which random numbers are drawn),
/// read alike, and are cut alike by all of `reports`; and inputs that only those read. Vertices read alike where they
/// read, at the same places, what their own time computes, and from before it the same tensor each time, or inputs of
/// the same shape, or what lies as far from that of the time before, ahead or back: so layers of gradients are folded,
/// too, which read their layers in reverse order. The first time and the last also read whatever came before. Leaves
/// alone what would save less than a few lines. O(vertices * longest layer).
Folding fold(const EinGraph& graph, const std::vector<PlanReport>& reports);

/// Every vertex stands for itself.
Folding unfolded(const EinGraph& graph);

}  // namespace einrel
