#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

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
  bool operator==(const TilingCut&) const = default;
};

/// Cuts, the first one outermost.
struct TilingCuts {
  std::vector<TilingCut> cuts;
  bool is_least = true;  ///< each cut is the best one for what the cuts before it left; not if the graph is too tangled
  /// Elements received by all sites: delta_1 + q_1 delta_2 + q_1 q_2 delta_3 + ...
  double moved() const;
  bool operator==(const TilingCuts&) const = default;
};

}  // namespace einrel
