#include "plan/where_brought.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "plan/layout.h"
#include "plan/placed_inputs.h"

namespace einrel {
namespace {

/// The digits that a layout gives to sites, the highest first; nothing where numbers between them are left out, or
/// chunks overlap. Its parts may be others than those of a placement by them.
std::optional<GivenPlacement> digits_of(const Layout& layout) {
  struct Digit {
    std::int64_t stride;
    std::int64_t sites;
    std::string along;
  };
  if (has_windows(layout)) return std::nullopt;
  std::vector<Digit> digits;
  for (std::size_t d = 0; d < layout.axes.size(); ++d) {
    const LayoutAxis& axis = layout.axes[d];
    if (axis.grid > 1) digits.push_back({axis.stride, axis.grid, std::to_string(d)});
  }
  for (const SiteCopies& alike : layout.copies) digits.push_back({alike.stride, alike.count, "copies"});
  std::sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) { return a.stride < b.stride; });
  GivenPlacement placement;
  std::int64_t next = 1;
  for (const Digit& digit : digits) {
    if (digit.stride != next) return std::nullopt;
    next *= digit.sites;
    placement.emplace_back(digit.along, digit.sites);
  }
  std::reverse(placement.begin(), placement.end());
  return placement;
}

/// Where a placement has an input.
Layout layout_of(const Vertex& input, const GivenPlacement& placement, std::int64_t sites) {
  EinGraph alone;
  alone.vertices.push_back(input);
  alone = with_placed_inputs(std::move(alone), {{input.name, placement}}, sites);
  return result_layout(input, *given_plan(alone.vertices.front()));
}

/// Of all sites together.
std::int64_t elements_of(const Layout& layout, const Shape& bound, std::int64_t sites) {
  std::int64_t elements = 0;
  for (std::int64_t site = 0; site < sites; ++site) elements += elements_at(layout, bound, site);
  return elements;
}

}  // namespace

GivenPlacements where_brought(const EinGraph& graph, const Plan& plan, const std::set<std::string>& fed) {
  std::vector<std::vector<Layout>> layouts(graph.vertices.size());
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (is_input(vertex) && !is_state(graph, v) && !fed.contains(vertex.name))
      layouts[v].push_back(result_layout(vertex, plan.vertices[v]));
  }
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& reader = graph.vertices[v];
    for (const std::size_t operand : operands_read(reader)) {
      std::vector<Layout>& known = layouts[reader.inputs[operand].index];
      if (!known.empty())
        known.push_back(needed_layout(reader, operand, graph[reader.inputs[operand]].bound, plan.vertices[v]));
    }
  }
  GivenPlacements placements;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const auto is_there = [&](const Layout& layout) { return layout == layouts[v].front(); };
    if (std::all_of(layouts[v].begin(), layouts[v].end(), is_there)) continue;  // nothing is brought
    std::int64_t most = 0;
    for (const Layout& layout : layouts[v]) {
      std::optional<GivenPlacement> placement = digits_of(layout);
      if (!placement || layout_of(graph.vertices[v], *placement, plan.sites) != layout) continue;
      const std::int64_t elements = elements_of(layout, graph.vertices[v].bound, plan.sites);
      if (elements <= most) continue;
      most = elements;
      placements[graph.vertices[v].name] = std::move(*placement);
    }
  }
  return placements;
}

}  // namespace einrel
