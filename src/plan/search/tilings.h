#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace einrel {

/// How a tensor lies in the groups of sites of one cut: divided along that dimension (SoyBean's P_i; R and C of a
/// matrix), or in each of them (SoyBean's r).
using Tiling = std::optional<std::size_t>;

/// All sites, or each group of the cut before, in so many groups (SoyBean, sections 4.2 and 4.3).
struct TilingCut {
  std::int64_t groups = 2;
  double moved = 0;             ///< elements that these groups receive from each other: delta
  std::vector<Tiling> tilings;  ///< per tensor
  std::vector<std::optional<std::size_t>>
      forms;  ///< per vertex the label that is divided; none if each group does it all
};

/// Cuts, the first one outermost.
struct TilingCuts {
  std::vector<TilingCut> cuts;
  bool is_least = true;  ///< each cut is the best one for what the cuts before it left; not if the graph is too tangled
  /// Elements received by all sites: delta_1 + q_1 delta_2 + q_1 q_2 delta_3 + ...
  double moved() const;
};

/// Per vertex the labels that are to be divided; the others only where none of these can be.
using AllowedForms = std::vector<std::vector<std::size_t>>;

/// The cheapest way to divide everything into groups, again and again until each group is one site, by SoyBean's count
/// of elements: one tiling per tensor and cut; every vertex divides one of its labels, which its operands and its
/// result have to be converted to and from; inputs lie anyhow, but a state as the step before leaves it. `groups`: into
/// how many each cut divides, the first one first; their product is all sites. Each cut is exact (elimination.h); of
/// cuts that cost the same, those are taken that leave least to the cuts that follow, as far as two preferences find
/// them. `allowed`: of each cut, the last one of them also for those that follow; anything if there are none.
TilingCuts tiling_cuts(const EinGraph& graph, const std::vector<std::int64_t>& groups,
                       std::span<const AllowedForms> allowed = {});

/// What the cuts of tiling_cuts would move at least if all of them were chosen at once, and not each for itself, the
/// first one first. Exact, too, and exponential in the number of cuts: nothing where there are too many ways to
/// compare.
std::optional<double> least_moved(const EinGraph& graph, const std::vector<std::int64_t>& groups);

/// Sites along each label of every vertex: as often as the cuts divided it.
std::vector<PartitionVector> grids_of(const EinGraph& graph, const TilingCuts& cuts);

/// How a tensor of so many dimensions is cut, in SoyBean's notation, the first cut first: "R.C.r" is halved by rows,
/// then by columns, then replicated; of tensors that are no matrices, P1 is their first dimension.
std::string tilings_text(const TilingCuts& cuts, std::size_t tensor, std::size_t dimensions);

}  // namespace einrel
