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

/// Along one direction of the sites, `count` copies of each tuple, each `stride` sites after the one before.
struct SiteCopies {
  std::int64_t count = 1;
  Site stride = 1;
  auto operator<=>(const SiteCopies&) const = default;
};

/// How the values of some key positions are spread over sites: value k of position i, out of `parts[i]`, has the grid
/// coordinate c = floor(k * grid[i] / parts[i]) (design: plan space, block mapping). A tuple lies on all sites
///   sum of c_i * strides[i]  +  sum of n_j * copies[j].stride,  0 <= n_j < copies[j].count.
/// Positions and copies are the digits of a site's number, see check_digits, so that different coordinates and copies
/// are different sites. Make one with row_major_grid or site_grid: then equal placements compare equal.
struct SiteGrid {
  std::vector<std::int64_t> parts;
  std::vector<std::int64_t> grid;
  std::vector<Site> strides;  ///< 0 where grid is 1
  std::vector<SiteCopies> copies;
  bool operator==(const SiteGrid&) const = default;
};

/// One copy of each tuple, coordinates numbered row-major from site 0. Throws UserError when that needs over 63 bits.
SiteGrid row_major_grid(std::vector<std::int64_t> parts, std::vector<std::int64_t> grid);
/// Any grid in normal form: strides of positions that are not spread are 0, copies are ascending, and as few as say the
/// same. Throws UserError when that needs over 63 bits.
SiteGrid site_grid(std::vector<std::int64_t> parts, std::vector<std::int64_t> grid, std::vector<Site> strides,
                   std::vector<SiteCopies> copies = {});
/// Whether coordinates are numbered row-major; says nothing of copies.
bool is_row_major(const SiteGrid& grid);
/// How many sites each tuple lies on. Throws UserError when that needs over 63 bits.
std::int64_t copies_of(const SiteGrid& grid);
/// Throws UserError unless all strides and counts are positive, every site number is below `sites`, and in the order of
/// their strides, each is at least stride * count of the one before: as digits of a number have it. O(n log n).
void check_digits(const SiteGrid& grid, std::int64_t sites);

/// The row-major grid that uses most sites with grid[i] <= parts[i], and among those the one with the most even parts.
/// O(sites log(sites)) per position.
SiteGrid spread(const std::vector<std::int64_t>& parts, std::int64_t sites);
/// The site of the tuple whose key has these values at the positions of the grid; for grids without copies.
Site site_of(const SiteGrid& grid, const Key& values);
/// All its sites, ascending.
std::vector<Site> sites_of(const SiteGrid& grid, const Key& values);
/// "5x2 of 10x4": sites and parts per position; "2x2 of 4x4 by 1,4 copies 2 by 2": with the strides where they are not
/// row-major, and count and stride of the copies.
std::string to_string(const SiteGrid& grid);

/// Part_D(R): tuples that agree on the positions D share their sites: one, unless the grid has copies.
struct Partitioned {
  KeyPositions positions;  ///< D, in the order of the grid
  SiteGrid grid;
  bool operator==(const Partitioned&) const = default;
};
/// On sites that no set of positions describes.
struct Scattered {
  bool operator==(const Scattered&) const = default;
};
/// Where the tuples of a physical relation lie.
using Placement = std::variant<Everywhere, Partitioned, Scattered>;

/// Where a tuple lies that is made wherever two tuples meet, which lie as `left` and `right` say of its key:
/// Partitioned when both step through the sites in the same strides, else Scattered. Positions are ascending.
Placement meeting(const Partitioned& left, const Partitioned& right);

/// "all", "part<0> on 5 of 10", "part<0> on 5 of 10 copies 2 by 5", "scattered"
std::string to_string(const Placement& placement);

}  // namespace einrel
