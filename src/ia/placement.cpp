#include "ia/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/extent.h"

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

std::vector<Site> row_major_strides(const std::vector<std::int64_t>& grid) {
  std::vector<Site> strides(grid.size(), 0);
  Site next = 1;
  for (std::size_t i = grid.size(); i-- > 0;) {
    if (grid[i] != 1) strides[i] = next;
    next = checked_multiply(next, grid[i]);
  }
  return strides;
}

bool by_stride(const SiteCopies& a, const SiteCopies& b) { return a.stride < b.stride; }

/// What comes after all sites of the copies.
Site end_of(const SiteCopies& copies) { return checked_multiply(copies.count, copies.stride); }

/// The copies in normal form: ascending, and two that step on together as one.
std::vector<SiteCopies> united(std::vector<SiteCopies> copies) {
  std::stable_sort(copies.begin(), copies.end(), by_stride);
  std::vector<SiteCopies> result;
  for (const SiteCopies& each : copies) {
    if (each.count == 1) continue;
    if (!result.empty() && end_of(result.back()) == each.stride) {
      result.back().count = checked_multiply(result.back().count, each.count);
    } else {
      result.push_back(each);
    }
  }
  return result;
}

/// The lowest site of a tuple.
Site first_site(const SiteGrid& grid, const Key& values) {
  invariant(values.size() == grid.grid.size(), "a site grid has one entry per position");
  Site site = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    invariant(values[i] >= 0 && values[i] < grid.parts[i], "a key lies inside its site grid");
    site += values[i] * grid.grid[i] / grid.parts[i] * grid.strides[i];
  }
  return site;
}

/// A digit of a site's number.
struct Digit {
  std::int64_t count = 1;
  Site stride = 1;
  std::size_t position = no_position;  ///< what it says; no_position: which copy
  std::int64_t parts = 1;
};

/// The digits of a placement, the one of least stride last.
std::vector<Digit> digits_of(const Partitioned& part) {
  std::vector<Digit> digits;
  for (std::size_t i = 0; i < part.positions.size(); ++i) {
    if (part.grid.grid[i] > 1)
      digits.push_back({part.grid.grid[i], part.grid.strides[i], part.positions[i], part.grid.parts[i]});
  }
  for (const SiteCopies& copies : part.grid.copies) digits.push_back({copies.count, copies.stride, no_position, 1});
  std::sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) { return a.stride > b.stride; });
  return digits;
}

/// Takes the last digit's part of `count`; what remains of a digit of copies is put back. Nullopt for other digits.
std::optional<Digit> take(std::vector<Digit>& digits, std::int64_t count) {
  Digit digit = digits.back();
  digits.pop_back();
  if (digit.count == count) return digit;
  if (digit.position != no_position || digit.count % count != 0) return std::nullopt;
  digits.push_back({digit.count / count, digit.stride * count, no_position, 1});
  digit.count = count;
  return digit;
}

/// What the digit says when it has to be both; nullopt when that is not one thing.
std::optional<Digit> both(const Digit& a, const Digit& b) {
  if (a.position == no_position) return b;
  if (b.position == no_position || (a.position == b.position && a.parts == b.parts)) return a;
  return std::nullopt;
}

}  // namespace

SiteGrid row_major_grid(std::vector<std::int64_t> parts, std::vector<std::int64_t> grid) {
  std::vector<Site> strides = row_major_strides(grid);
  return {std::move(parts), std::move(grid), std::move(strides), {}};
}

SiteGrid site_grid(std::vector<std::int64_t> parts, std::vector<std::int64_t> grid, std::vector<Site> strides,
                   std::vector<SiteCopies> copies) {
  for (std::size_t i = 0; i < grid.size() && i < strides.size(); ++i) {
    if (grid[i] == 1) strides[i] = 0;
  }
  return {std::move(parts), std::move(grid), std::move(strides), united(std::move(copies))};
}

bool is_row_major(const SiteGrid& grid) { return grid.strides == row_major_strides(grid.grid); }

std::int64_t copies_of(const SiteGrid& grid) {
  std::int64_t count = 1;
  for (const SiteCopies& copies : grid.copies) count = checked_multiply(count, copies.count);
  return count;
}

void check_digits(const SiteGrid& grid, std::int64_t sites) {
  if (grid.strides.size() != grid.grid.size()) {
    throw UserError(fmt::format("a site grid has one stride per position; {} positions have {}", grid.grid.size(),
                                grid.strides.size()));
  }
  std::vector<SiteCopies> digits = grid.copies;
  for (std::size_t i = 0; i < grid.grid.size(); ++i) {
    if (grid.grid[i] != 1) digits.push_back({grid.grid[i], grid.strides[i]});
  }
  std::stable_sort(digits.begin(), digits.end(), by_stride);
  Site last = 0;
  Site least = 1;  // that the next stride may be
  for (const auto& [count, stride] : digits) {
    if (count < 1) throw UserError(fmt::format("a site grid {} has {} copies of a tuple", to_string(grid), count));
    if (stride < least) {
      throw UserError(fmt::format(
          "a site grid {} gives several tuples or copies one site: after the sites below {} comes a stride of {}",
          to_string(grid), least, stride));
    }
    if (count - 1 > (sites - 1 - last) / stride)
      throw UserError(fmt::format("a site grid {} on {} sites", to_string(grid), sites));
    last += (count - 1) * stride;
    least = checked_multiply(stride, count);
  }
}

SiteGrid spread(const std::vector<std::int64_t>& parts, std::int64_t sites) {
  // The best grid over the first positions for each number of sites used: fuller sites less full, first positions cut
  // more.
  std::map<std::int64_t, std::vector<std::int64_t>> best{{1, {}}};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::map<std::int64_t, std::vector<std::int64_t>> longer;
    for (const auto& [used, grid] : best) {
      const std::int64_t most = std::max<std::int64_t>(1, std::min(parts[i], sites / used));
      const std::int64_t least = i + 1 == parts.size() ? most : 1;  // nothing follows: fewer is worse
      for (std::int64_t cuts = most; cuts >= least; --cuts) {
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
  return row_major_grid(parts, best.rbegin()->second);
}

Site site_of(const SiteGrid& grid, const Key& values) {
  invariant(copies_of(grid) == 1, "a tuple with copies has several sites");
  return first_site(grid, values);
}

std::vector<Site> sites_of(const SiteGrid& grid, const Key& values) {
  std::vector<Site> sites{first_site(grid, values)};
  for (const SiteCopies& copies : grid.copies) {
    const std::size_t before = sites.size();
    for (std::int64_t copy = 1; copy < copies.count; ++copy) {
      for (std::size_t i = 0; i < before; ++i) sites.push_back(sites[i] + copy * copies.stride);
    }
  }
  std::sort(sites.begin(), sites.end());
  return sites;
}

Placement meeting(const Partitioned& left, const Partitioned& right) {
  std::vector<Digit> of_left = digits_of(left);
  std::vector<Digit> of_right = digits_of(right);
  std::vector<Digit> positions;
  std::vector<SiteCopies> copies;
  while (!of_left.empty() && !of_right.empty()) {
    const std::int64_t count = std::min(of_left.back().count, of_right.back().count);
    const std::optional<Digit> a = take(of_left, count);
    const std::optional<Digit> b = take(of_right, count);
    if (!a || !b || a->stride != b->stride) return Scattered{};
    const std::optional<Digit> digit = both(*a, *b);
    if (!digit) return Scattered{};
    if (digit->position == no_position) {
      copies.push_back({digit->count, digit->stride});
    } else {
      positions.push_back(*digit);
    }
  }
  if (!of_left.empty() || !of_right.empty()) return Scattered{};
  std::sort(positions.begin(), positions.end(), [](const Digit& a, const Digit& b) { return a.position < b.position; });
  Partitioned result;
  for (const Digit& digit : positions) {
    if (!result.positions.empty() && result.positions.back() == digit.position) return Scattered{};
    result.positions.push_back(digit.position);
    result.grid.parts.push_back(digit.parts);
    result.grid.grid.push_back(digit.count);
    result.grid.strides.push_back(digit.stride);
  }
  result.grid.copies = united(std::move(copies));
  return result;
}

std::string to_string(const SiteGrid& grid) {
  std::string text = "1";
  if (!grid.grid.empty()) text = fmt::format("{} of {}", fmt::join(grid.grid, "x"), fmt::join(grid.parts, "x"));
  if (!is_row_major(grid)) text += fmt::format(" by {}", fmt::join(grid.strides, ","));
  for (const SiteCopies& copies : grid.copies) {
    text += &copies == &grid.copies.front() ? " copies " : ", ";
    text += fmt::format("{} by {}", copies.count, copies.stride);
  }
  return text;
}

std::string to_string(const Placement& placement) {
  if (std::holds_alternative<Everywhere>(placement)) return "all";
  if (const auto* part = std::get_if<Partitioned>(&placement))
    return fmt::format("part{} on {}", to_string(part->positions), to_string(part->grid));
  return "scattered";
}

}  // namespace einrel
