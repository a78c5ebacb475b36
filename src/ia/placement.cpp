#include "ia/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace einrel {
namespace {

std::int64_t product(const std::vector<std::int64_t>& factors) {
  std::int64_t result = 1;
  for (const std::int64_t factor : factors) result *= factor;
  return result;
}

/// The largest number of parts that meet at one site.
std::int64_t most_parts_per_site(const SiteGrid& grid) {
  std::int64_t most = 1;
  for (std::size_t i = 0; i < grid.parts.size(); ++i) most *= (grid.parts[i] + grid.grid[i] - 1) / grid.grid[i];
  return most;
}

/// Whether `a` is the better choice: more sites, then the fuller sites less full, then first positions cut more.
bool better(const SiteGrid& a, const SiteGrid& b) {
  if (product(a.grid) != product(b.grid)) return product(a.grid) > product(b.grid);
  if (most_parts_per_site(a) != most_parts_per_site(b)) return most_parts_per_site(a) < most_parts_per_site(b);
  return a.grid > b.grid;
}

}  // namespace

SiteGrid spread(const std::vector<std::int64_t>& parts, std::int64_t sites) {
  // candidates[i]: grids over the first i positions that use at most `sites`; the best for each product is enough.
  std::vector<SiteGrid> candidates{{{}, {}}};
  for (const std::int64_t part : parts) {
    std::vector<SiteGrid> longer;
    for (const SiteGrid& candidate : candidates) {
      const std::int64_t most = std::min(part, sites / product(candidate.grid));
      for (std::int64_t cuts = 1; cuts <= std::max<std::int64_t>(1, most); ++cuts) {
        SiteGrid next = candidate;
        next.parts.push_back(part);
        next.grid.push_back(cuts);
        const auto same = std::find_if(longer.begin(), longer.end(), [&](const SiteGrid& other) {
          return product(other.grid) == product(next.grid);
        });
        if (same == longer.end()) {
          longer.push_back(std::move(next));
        } else if (better(next, *same)) {
          *same = std::move(next);
        }
      }
    }
    candidates = std::move(longer);
  }
  return *std::max_element(candidates.begin(), candidates.end(),
                           [](const SiteGrid& a, const SiteGrid& b) { return better(b, a); });
}

Site site_of(const SiteGrid& grid, const Key& values) {
  invariant(values.size() == grid.grid.size(), "a site grid has one entry per position");
  Site site = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    invariant(values[i] < grid.parts[i], "a key lies inside its site grid");
    site = site * grid.grid[i] + values[i] * grid.grid[i] / grid.parts[i];
  }
  return site;
}

std::string to_string(const SiteGrid& grid) {
  if (grid.grid.empty()) return "1";
  return fmt::format("{} of {}", fmt::join(grid.grid, "x"), fmt::join(grid.parts, "x"));
}

std::string to_string(const Placement& placement) {
  if (std::holds_alternative<Everywhere>(placement)) return "all";
  if (const auto* part = std::get_if<Partitioned>(&placement))
    return fmt::format("part{} on {}", to_string(part->positions), to_string(part->grid));
  return "scattered";
}

}  // namespace einrel
