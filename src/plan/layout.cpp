#include "plan/layout.h"

#include <algorithm>

namespace einrel {
namespace {

/// The cut of a dimension of a View: whole units of its group's other labels.
std::int64_t unit_of_group(const View& view, const std::vector<std::size_t>& group) {
  std::int64_t unit = 1;
  for (std::size_t i = 1; i < group.size(); ++i) unit *= view.labels[group[i]].extent.value();
  return unit;
}

LayoutAxis axis_of(const VertexPlan& plan, std::optional<std::size_t> label, std::int64_t unit) {
  if (!label || plan.parts[*label] == 1) return {};
  return {{plan.parts[*label], unit}, plan.grid[*label], plan.strides[*label]};
}

Layout layout_of(const Vertex& vertex, const std::vector<std::optional<std::size_t>>& labels,
                 const std::vector<std::vector<std::size_t>>* groups, const VertexPlan& plan) {
  Layout layout;
  for (std::size_t d = 0; d < labels.size(); ++d) {
    const std::int64_t unit = groups == nullptr ? 1 : unit_of_group(std::get<View>(vertex.op), (*groups)[d]);
    layout.axes.push_back(axis_of(plan, labels[d], unit));
  }
  return layout;
}

/// Copies in steps that follow each other are copies in one.
std::vector<SiteCopies> merged(std::vector<SiteCopies> copies) {
  std::sort(copies.begin(), copies.end(), [](const SiteCopies& a, const SiteCopies& b) { return a.stride < b.stride; });
  std::vector<SiteCopies> result;
  for (const SiteCopies& next : copies) {
    if (!result.empty() && next.stride == result.back().stride * result.back().count) {
      result.back().count *= next.count;
    } else {
      result.push_back(next);
    }
  }
  return result;
}

/// The coordinate of a site along an axis of this many sites.
std::int64_t coordinate(std::int64_t site, std::int64_t grid, std::int64_t stride) {
  return grid == 1 ? 0 : site / stride % grid;
}

/// The first part of a coordinate; that of `grid` is the number of parts.
std::int64_t first_part(const LayoutAxis& axis, std::int64_t at) {
  return (at * axis.cut.parts + axis.grid - 1) / axis.grid;
}

Range range_at(const LayoutAxis& axis, Extent extent, std::int64_t at) {
  return {chunk_begin(extent, axis.cut, first_part(axis, at)), chunk_begin(extent, axis.cut, first_part(axis, at + 1))};
}

std::int64_t elements_of(const std::vector<Range>& ranges) {
  std::int64_t elements = 1;
  for (const Range& range : ranges) elements *= std::max<std::int64_t>(range.end - range.begin, 0);
  return elements;
}

}  // namespace

Layout result_layout(const Vertex& vertex, const VertexPlan& plan) {
  const auto* const view = std::get_if<View>(&vertex.op);
  return layout_of(vertex, result_labels(vertex), view == nullptr ? nullptr : &view->to, plan);
}

Layout needed_layout(const Vertex& vertex, std::size_t operand, const VertexPlan& plan) {
  const auto* const view = std::get_if<View>(&vertex.op);
  const std::vector<std::optional<std::size_t>> labels = operand_labels(vertex, operand);
  Layout layout = layout_of(vertex, labels, view == nullptr ? nullptr : &view->from, plan);
  for (std::size_t label = 0; label < plan.grid.size(); ++label) {
    const bool is_read = std::find(labels.begin(), labels.end(), std::optional(label)) != labels.end();
    if (!is_read && plan.grid[label] > 1) layout.copies.push_back({plan.grid[label], plan.strides[label]});
  }
  layout.copies = merged(std::move(layout.copies));
  return layout;
}

std::optional<std::vector<Range>> region_of(const Layout& layout, const Shape& bound, std::int64_t site) {
  std::int64_t number = 0;
  const auto count = [&](std::int64_t grid, std::int64_t stride) {
    const std::int64_t at = coordinate(site, grid, stride);
    number += at * stride;
    return at;
  };
  std::vector<Range> ranges;
  ranges.reserve(layout.axes.size());
  for (std::size_t d = 0; d < layout.axes.size(); ++d) {
    const LayoutAxis& axis = layout.axes[d];
    ranges.push_back(range_at(axis, bound[d], count(axis.grid, axis.stride)));
  }
  for (const SiteCopies& copies : layout.copies) count(copies.count, copies.stride);
  if (number != site) return std::nullopt;
  return ranges;
}

std::vector<std::int64_t> elements_received(const Layout& have, const Layout& need, const Shape& bound,
                                            std::int64_t sites) {
  std::vector<std::int64_t> received(static_cast<std::size_t>(sites), 0);
  if (have == need) return received;
  for (std::int64_t site = 0; site < sites; ++site) {
    const auto needed = region_of(need, bound, site);
    if (!needed) continue;
    std::int64_t& elements = received[static_cast<std::size_t>(site)];
    elements = elements_of(*needed);
    auto held = region_of(have, bound, site);
    if (!held) continue;
    for (std::size_t d = 0; d < held->size(); ++d) {
      (*held)[d] = {std::max((*held)[d].begin, (*needed)[d].begin), std::min((*held)[d].end, (*needed)[d].end)};
    }
    elements -= elements_of(*held);
  }
  return received;
}

std::int64_t elements_at(const Layout& layout, const Shape& bound, std::int64_t site) {
  const auto ranges = region_of(layout, bound, site);
  return ranges ? elements_of(*ranges) : 0;
}

}  // namespace einrel
