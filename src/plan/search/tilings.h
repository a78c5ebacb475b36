#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/tiling_cuts.h"

namespace einrel {

/// Per vertex the labels that are to be divided; the others only where none of these can be.
using AllowedForms = std::vector<std::vector<std::size_t>>;

/// A way to divide everything into groups, again and again until each group is one site.
struct CutsWanted {
  std::vector<std::int64_t> groups;        ///< into how many each cut divides, the first one first
  std::vector<AllowedForms> allowed = {};  ///< of each cut, the last one also for those that follow; else anything
};

/// The cheapest cuts by SoyBean's count of elements: one tiling per tensor and cut; every vertex divides one of its
/// labels, which its operands and its result have to be converted to and from; inputs lie anyhow, but a state as the
/// step before leaves it. Each cut is exact (elimination.h); of cuts that cost the same, those are taken that leave
/// least to the cuts that follow, as far as two preferences find them. Of several ways (one at least) the one that
/// counts least in the end; of those that count the same the one by which a site has to compute least, then the first.
TilingCuts tiling_cuts(const EinGraph& graph, const std::vector<CutsWanted>& ways);

/// What cuts into so many groups would move at least if all of them were chosen at once, and not each for itself, the
/// first one first. Exact, too, and exponential in the number of cuts: nothing where there are too many ways to
/// compare.
std::optional<double> least_moved(const EinGraph& graph, const std::vector<std::int64_t>& groups);

/// Sites along each label of every vertex: as often as the cuts divided it.
std::vector<PartitionVector> grids_of(const EinGraph& graph, const TilingCuts& cuts);

/// How a tensor of so many dimensions is cut, in SoyBean's notation, the first cut first: "R.C.r" is halved by rows,
/// then by columns, then replicated; of tensors that are no matrices, P1 is their first dimension.
std::string tilings_text(const TilingCuts& cuts, std::size_t tensor, std::size_t dimensions);

}  // namespace einrel
