#include "plan/layout.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

/// The cut of a dimension of a View: whole units of its group's other labels.
std::int64_t unit_of_group(const std::vector<Label>& labels, const std::vector<std::size_t>& group) {
  std::int64_t unit = 1;
  for (std::size_t i = 1; i < group.size(); ++i) unit *= labels[group[i]].extent.value();
  return unit;
}

LayoutAxis axis_of(const VertexPlan& plan, std::optional<std::size_t> label, const DimensionCut& cut) {
  if (!label || plan.parts[*label] == 1) return {};
  return {cut, plan.grid[*label], plan.strides[*label]};
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

/// The result as it would lie unscattered.
Layout unscattered_layout(const Vertex& vertex, const VertexPlan& plan) {
  const View* const view = view_of(vertex);
  const std::vector<std::optional<std::size_t>> labels = result_labels(vertex);
  Layout layout;
  layout.axes.reserve(labels.size());
  for (std::size_t d = 0; d < labels.size(); ++d) {
    const std::int64_t unit = view == nullptr ? 1 : unit_of_group(labels_of(vertex), view->to[d]);
    layout.axes.push_back(axis_of(plan, labels[d], {labels[d] ? plan.parts[*labels[d]] : 1, unit}));
  }
  return layout;
}

/// The digits of a site's number that say which part of a result it computes.
std::vector<SiteCopies> reduced_digits(const Vertex& vertex, const VertexPlan& plan) {
  std::vector<SiteCopies> digits;
  for (const std::size_t label : reduced_labels(vertex)) {
    if (plan.grid[label] > 1) digits.push_back({plan.grid[label], plan.strides[label]});
  }
  return merged(std::move(digits));
}

/// The coordinate of a site along an axis of this many sites.
std::int64_t coordinate(std::int64_t site, std::int64_t grid, std::int64_t stride) {
  return grid == 1 ? 0 : site / stride % grid;
}

/// The first part of a coordinate; that of `grid` is the number of parts.
std::int64_t first_part(const LayoutAxis& axis, std::int64_t at) {
  return (at * axis.cut.parts + axis.grid - 1) / axis.grid;
}

/// What all parts of a coordinate together have of a dimension: windows of neighbouring parts touch.
ElementRange range_of(const LayoutAxis& axis, Extent extent, std::int64_t at) {
  const std::int64_t first = first_part(axis, at);
  const std::int64_t behind = first_part(axis, at + 1);
  if (!axis.cut.window) return {chunk_begin(extent, axis.cut, first), chunk_begin(extent, axis.cut, behind)};
  const ElementRange one = elements_in_chunk(extent, axis.cut, first);
  const ElementRange other = elements_in_chunk(extent, axis.cut, behind - 1);
  return {std::min(one.begin, other.begin), std::max(one.end, other.end)};
}

/// How long the chunks of a coordinate are along a dimension, added up.
std::int64_t length_of_chunks(const LayoutAxis& axis, Extent extent, std::int64_t at) {
  if (!axis.cut.window) return range_of(axis, extent, at).extent();
  std::int64_t length = 0;
  for (std::int64_t part = first_part(axis, at); part < first_part(axis, at + 1); ++part)
    length += chunk_range(extent, axis.cut, part).extent();
  return length;
}

/// What one site after the other, from 0, has of a tensor. Their coordinates count up, which is many times as fast as
/// dividing: planning asks this more often than anything else.
class SiteWalk {
 public:
  SiteWalk(const Layout& layout, const Shape& bound) {
    for (std::size_t d = 0; d < layout.axes.size(); ++d) {
      const LayoutAxis& axis = layout.axes[d];
      ranges_.push_back(range_of(axis, bound[d], 0));
      if (axis.grid == 1) continue;
      digits_.push_back({axis.grid, axis.stride, d, range_at_.size()});
      for (std::int64_t at = 0; at < axis.grid; ++at) range_at_.push_back(range_of(axis, bound[d], at));
    }
    for (const SiteCopies& copies : layout.copies) digits_.push_back({copies.count, copies.stride, ranges_.size(), 0});
  }

  /// Whether the site has anything.
  bool is_used() const { return number_ == site_; }
  /// Of each dimension, if so.
  const std::vector<ElementRange>& ranges() const { return ranges_; }

  void next() {
    ++site_;
    for (Digit& digit : digits_) {
      if (++digit.since < digit.stride) continue;
      digit.since = 0;
      number_ += digit.stride;
      if (++digit.at == digit.count) {
        digit.at = 0;
        number_ -= digit.count * digit.stride;
      }
      if (digit.dimension == ranges_.size()) continue;
      ranges_[digit.dimension] = range_at_[digit.ranges + static_cast<std::size_t>(digit.at)];
    }
  }

 private:
  struct Digit {
    std::int64_t count = 1;
    std::int64_t stride = 1;
    std::size_t dimension = 0;  ///< behind all for copies
    std::size_t ranges = 0;     ///< where those of its coordinates begin
    std::int64_t at = 0;
    std::int64_t since = 0;  ///< sites since it changed
  };

  std::vector<Digit> digits_;
  std::vector<ElementRange> range_at_;  ///< per digit of a dimension, and coordinate
  std::vector<ElementRange> ranges_;
  std::int64_t site_ = 0;
  std::int64_t number_ = 0;  ///< that the digits give; another than the site's where it has nothing
};

std::int64_t elements_of(const std::vector<ElementRange>& ranges) {
  std::int64_t elements = 1;
  for (const ElementRange& range : ranges) elements *= range.end - range.begin;
  return elements;
}

std::int64_t elements_of_both(const std::vector<ElementRange>& a, const std::vector<ElementRange>& b) {
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < a.size(); ++d) {
    elements *= std::max<std::int64_t>(std::min(a[d].end, b[d].end) - std::max(a[d].begin, b[d].begin), 0);
  }
  return elements;
}

/// Whether the sites of every group of so many have a grid of chunks, or one chunk.
bool nests(const Layout& layout, std::int64_t group) {
  const auto nest = [&](std::int64_t count, std::int64_t stride) {
    if (count == 1) return true;
    if (stride >= group) return stride % group == 0;
    const std::int64_t all = count * stride;
    return group % stride == 0 && (all % group == 0 || group % all == 0);
  };
  return std::all_of(layout.axes.begin(), layout.axes.end(),
                     [&](const LayoutAxis& axis) { return nest(axis.grid, axis.stride); }) &&
         std::all_of(layout.copies.begin(), layout.copies.end(),
                     [&](const SiteCopies& copies) { return nest(copies.count, copies.stride); });
}

/// Of groups of so many sites each, as if a group were one site.
Layout layout_of_groups(const Layout& layout, std::int64_t sites) {
  // Of neighbouring sites with this stride, how many of `count` groups there are, and the stride of groups.
  const auto outside = [&](std::int64_t count, std::int64_t stride) -> std::pair<std::int64_t, std::int64_t> {
    if (stride >= sites)
      return stride % sites == 0 ? std::pair(count, stride / sites) : std::pair<std::int64_t, std::int64_t>(1, 0);
    const std::int64_t all = count * stride;
    if (all <= sites || sites % stride != 0 || all % sites != 0) return {1, 0};
    return {all / sites, 1};
  };
  Layout groups = layout;
  for (LayoutAxis& axis : groups.axes) {
    if (axis.grid > 1) std::tie(axis.grid, axis.stride) = outside(axis.grid, axis.stride);
    if (axis.grid == 1) axis = {axis.cut.window ? axis.cut : DimensionCut{1, axis.cut.unit}, 1, 0};
  }
  groups.copies.clear();
  for (const SiteCopies& copies : layout.copies) {
    const auto [count, stride] = outside(copies.count, copies.stride);
    if (count > 1) groups.copies.push_back({count, stride});
  }
  return groups;
}

/// What a site has: of each dimension a range.
using Box = std::vector<ElementRange>;

void add_new(const Box& box, std::vector<Box>& boxes) {
  if (std::find(boxes.begin(), boxes.end(), box) == boxes.end()) boxes.push_back(box);
}

/// Elements of these boxes, each once, that are in none of the others. O((2 boxes)^dimensions * boxes).
std::int64_t elements_of_none(const std::vector<Box>& boxes, const std::vector<Box>& others, std::size_t dimensions) {
  std::vector<std::vector<std::int64_t>> borders(dimensions);
  for (const std::vector<Box>* const some : {&boxes, &others}) {
    for (const Box& box : *some) {
      for (std::size_t d = 0; d < dimensions; ++d) {
        borders[d].push_back(box[d].begin);
        borders[d].push_back(box[d].end);
      }
    }
  }
  for (std::vector<std::int64_t>& border : borders) {
    std::sort(border.begin(), border.end());
    border.erase(std::unique(border.begin(), border.end()), border.end());
    if (border.size() < 2) return 0;
  }
  std::int64_t elements = 0;
  std::vector<std::size_t> at(dimensions, 0);
  Box cell(dimensions);
  const auto is_in = [&](const Box& box) { return elements_of_both(box, cell) > 0; };
  while (true) {
    for (std::size_t d = 0; d < dimensions; ++d) cell[d] = {borders[d][at[d]], borders[d][at[d] + 1]};
    const bool is_needed = std::any_of(boxes.begin(), boxes.end(), is_in);
    if (is_needed && std::none_of(others.begin(), others.end(), is_in)) elements += elements_of(cell);
    std::size_t d = dimensions;
    while (d > 0 && ++at[d - 1] + 1 == borders[d - 1].size()) at[--d] = 0;
    if (d == 0) return elements;
  }
}

}  // namespace

Layout owned_layout(const Vertex& vertex, const VertexPlan& plan) {
  Layout layout = unscattered_layout(vertex, with_scattered_result(vertex, plan));
  layout.copies = merged(plan.copies);
  return layout;
}

Layout result_layout(const Vertex& vertex, const VertexPlan& plan) {
  Layout layout = owned_layout(vertex, plan);
  if (plan.all_reduced) layout.copies = reduced_digits(vertex, plan);
  return layout;
}

Layout partial_layout(const Vertex& vertex, const VertexPlan& plan) {
  Layout layout = unscattered_layout(vertex, plan);
  layout.copies = reduced_digits(vertex, plan);
  return layout;
}

VertexPlan with_scattered_result(const Vertex& vertex, VertexPlan plan) {
  if (!plan.scatter) return plan;
  const SiteCopies digit = reduced_digits(vertex, plan).front();
  plan.grid[*plan.scatter] *= digit.count;
  plan.strides[*plan.scatter] = digit.stride;
  plan.scatter.reset();
  return plan;
}

bool numbers_scatter(const Vertex& vertex, const VertexPlan& plan) {
  const std::vector<SiteCopies> digits = reduced_digits(vertex, plan);
  const std::size_t label = *plan.scatter;
  return digits.size() == 1 &&
         (plan.grid[label] == 1 || plan.strides[label] == digits.front().count * digits.front().stride);
}

Layout needed_layout(const Vertex& vertex, std::size_t operand, const Shape& bound, const VertexPlan& plan) {
  const std::vector<std::optional<std::size_t>> labels = operand_labels(vertex, operand);
  Layout layout;
  layout.axes.reserve(labels.size());
  for (std::size_t d = 0; d < labels.size(); ++d)
    layout.axes.push_back(axis_of(plan, labels[d], operand_cut(vertex, operand, d, bound[d], plan.parts)));
  for (std::size_t label = 0; label < plan.grid.size(); ++label) {
    const bool is_read = std::find(labels.begin(), labels.end(), std::optional(label)) != labels.end();
    if (!is_read && plan.grid[label] > 1) layout.copies.push_back({plan.grid[label], plan.strides[label]});
  }
  layout.copies.insert(layout.copies.end(), plan.copies.begin(), plan.copies.end());
  layout.copies = merged(std::move(layout.copies));
  return layout;
}

std::vector<DimensionCut> cuts_of(const Layout& layout) {
  std::vector<DimensionCut> cuts;
  for (const LayoutAxis& axis : layout.axes) cuts.push_back(axis.cut);
  return cuts;
}

bool has_windows(const Layout& layout) {
  return std::any_of(layout.axes.begin(), layout.axes.end(),
                     [](const LayoutAxis& axis) { return axis.cut.window.has_value(); });
}

std::vector<std::int64_t> elements_received(const Layout& have, const Layout& need, const Shape& bound,
                                            std::int64_t sites) {
  std::vector<std::int64_t> received(static_cast<std::size_t>(sites), 0);
  if (have == need) return received;
  SiteWalk held(have, bound);
  SiteWalk needed(need, bound);
  for (std::int64_t& elements : received) {
    if (needed.is_used()) elements = elements_of(needed.ranges());
    if (needed.is_used() && held.is_used()) elements -= elements_of_both(held.ranges(), needed.ranges());
    held.next();
    needed.next();
  }
  return received;
}

std::vector<std::int64_t> elements_crossing(const Layout& have, const Layout& need, const Shape& bound,
                                            std::int64_t sites, std::int64_t group) {
  const std::int64_t groups = (sites + group - 1) / group;
  if (nests(have, group) && nests(need, group))
    return elements_received(layout_of_groups(have, group), layout_of_groups(need, group), bound, groups);
  std::vector<std::int64_t> crossing(static_cast<std::size_t>(groups), 0);
  SiteWalk held(have, bound);
  SiteWalk needed(need, bound);
  for (std::int64_t g = 0; g < groups; ++g) {
    std::vector<Box> holds;
    std::vector<Box> needs;
    for (std::int64_t site = g * group; site < std::min((g + 1) * group, sites); ++site) {
      if (held.is_used()) add_new(held.ranges(), holds);
      if (needed.is_used()) add_new(needed.ranges(), needs);
      held.next();
      needed.next();
    }
    crossing[static_cast<std::size_t>(g)] = elements_of_none(needs, holds, bound.size());
  }
  return crossing;
}

std::vector<std::int64_t> parts_crossing(const Vertex& vertex, const VertexPlan& plan, std::int64_t sites,
                                         std::int64_t group) {
  std::vector<std::int64_t> sharing{0};  // sites, counted from the first one, with parts of the same results
  std::vector<std::int64_t> crossing(static_cast<std::size_t>((sites + group - 1) / group), 0);
  const std::vector<SiteCopies> digits = reduced_digits(vertex, plan);
  for (const SiteCopies& digit : digits) {
    const std::size_t count = sharing.size();
    for (std::int64_t at = 1; at < digit.count; ++at) {
      for (std::size_t s = 0; s < count; ++s) sharing.push_back(sharing[s] + at * digit.stride);
    }
  }
  const Layout owners = owned_layout(vertex, plan);
  for (std::int64_t site = 0; site < sites; ++site) {
    const std::int64_t elements = elements_at(owners, vertex.bound, site);
    if (elements == 0) continue;
    std::int64_t first = site;
    for (const SiteCopies& digit : digits) first -= coordinate(site, digit.count, digit.stride) * digit.stride;
    const auto outside = std::count_if(sharing.begin(), sharing.end(),
                                       [&](std::int64_t other) { return (first + other) / group != site / group; });
    crossing[static_cast<std::size_t>(site / group)] += outside * elements;
  }
  return crossing;
}

std::int64_t elements_at(const Layout& layout, const Shape& bound, std::int64_t site) {
  std::int64_t number = 0;
  for (const LayoutAxis& axis : layout.axes) number += coordinate(site, axis.grid, axis.stride) * axis.stride;
  for (const SiteCopies& copies : layout.copies)
    number += coordinate(site, copies.count, copies.stride) * copies.stride;
  if (number != site) return 0;
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < layout.axes.size(); ++d) {
    const LayoutAxis& axis = layout.axes[d];
    const std::int64_t at = coordinate(site, axis.grid, axis.stride);
    elements *= length_of_chunks(axis, bound[d], at);
  }
  return elements;
}

}  // namespace einrel
