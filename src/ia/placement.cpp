#include "ia/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/error.h"

namespace einrel {
namespace {

/// The largest number of parts that meet at one site; as a double, since it may exceed 63 bits.
double most_parts_per_site(const std::vector<std::int64_t>& parts, const std::vector<std::int64_t>& grid) {
  double most = 1;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const std::int64_t here = (parts[i] + grid[i] - 1) / grid[i];
    most *= static_cast<double>(here);
  }
  return most;
}

}  // namespace

SiteGrid spread(const std::vector<std::int64_t>& parts, std::int64_t sites) {
  // The best grid over the first positions for each number of sites used: fuller sites less full, first positions cut
  // more.
  std::map<std::int64_t, std::vector<std::int64_t>> best{{1, {}}};
  for (const std::int64_t part : parts) {
    std::map<std::int64_t, std::vector<std::int64_t>> longer;
    for (const auto& [used, grid] : best) {
      for (std::int64_t cuts = std::max<std::int64_t>(1, std::min(part, sites / used)); cuts >= 1; --cuts) {
        std::vector<std::int64_t> next = grid;
        next.push_back(cuts);
        const auto [held, is_new] = longer.emplace(used * cuts, next);
        if (is_new) continue;
        const double new_parts = most_parts_per_site(parts, next);
        const double held_parts = most_parts_per_site(parts, held->second);
        if (new_parts < held_parts || (new_parts == held_parts && next > held->second)) held->second = std::move(next);
      }
    }
    best = std::move(longer);
  }
  return {parts, best.rbegin()->second};
}

Site site_of(const SiteGrid& grid, const Key& values) {
  invariant(values.size() == grid.grid.size(), "a site grid has one entry per position");
  Site site = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    invariant(values[i] >= 0 && values[i] < grid.parts[i], "a key lies inside its site grid");
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
