#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tra/key.h"
#include "tra/layout.h"

namespace einrel {

/// A place of computation: 0 .. sites-1.
using Site = std::int64_t;

/// How the values of some key positions are spread over sites: value k of position i, out of `parts[i]`, lies at grid
/// coordinate floor(k * grid[i] / parts[i]); coordinates are numbered row-major (design: plan space, block mapping).
/// The product of `grid` is the number of sites used.
struct SiteGrid {
  std::vector<std::int64_t> parts;
  std::vector<std::int64_t> grid;
  bool operator==(const SiteGrid&) const = default;
};

/// The grid that uses most sites with grid[i] <= parts[i], and among those the one with the most even parts.
/// O(sites log(sites)) per position.
SiteGrid spread(const std::vector<std::int64_t>& parts, std::int64_t sites);
/// The site of the tuple whose key has these values at the positions of the grid.
Site site_of(const SiteGrid& grid, const Key& values);
/// "5x2 of 10x4": sites and parts per position.
std::string to_string(const SiteGrid& grid);

/// Part_D(R): one copy of every tuple; tuples that agree on the positions D share a site.
struct Partitioned {
  KeyPositions positions;  ///< D, in the order of the grid
  SiteGrid grid;
  bool operator==(const Partitioned&) const = default;
};
/// One copy of every tuple (or, of a partial aggregate, one per site), on sites that no set of positions describes.
struct Scattered {
  bool operator==(const Scattered&) const = default;
};
/// Where the tuples of a physical relation lie.
using Placement = std::variant<Everywhere, Partitioned, Scattered>;

std::string to_string(const Placement& placement);  // "all", "part<0> on 5 of 10", "scattered"

}  // namespace einrel
