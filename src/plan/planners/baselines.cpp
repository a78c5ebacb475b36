#include "plan/planners/baselines.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "einsum/graph/vertex_facts.h"
#include "ia/placement.h"
#include "plan/refine/numbering.h"

namespace einrel {
namespace {

/// Plans each vertex alone; inputs follow.
template <class F>
Plan plan_each(const EinGraph& graph, const PlanRequest& request, F plan_of_vertex) {
  Plan plan{"", request.sites, {}};
  plan.is_spmd = request.spmd;
  for (const Vertex& vertex : graph.vertices) {
    const PartitionVector whole(label_extents(vertex).size(), 1);
    plan.vertices.push_back(is_input(vertex) ? one_part_per_site(whole) : plan_of_vertex(vertex));
  }
  number_sites(graph, plan, request.machine);
  return plan;
}

bool is_square(const Vertex& vertex) {
  const Shape extents = label_extents(vertex);
  return extents.size() == 3 && reduced_labels(vertex).size() == 1 && extents[0] == extents[1] &&
         extents[1] == extents[2];
}

std::optional<std::int64_t> cube_root(std::int64_t value) {
  const auto root = static_cast<std::int64_t>(std::llround(std::cbrt(static_cast<double>(value))));
  return root * root * root == value ? std::optional(root) : std::nullopt;
}

/// The smallest divisor of sites that is at least its root.
std::int64_t wider_side(std::int64_t sites) {
  std::int64_t side = 1;
  while (side * side < sites || sites % side != 0) ++side;
  return side;
}

PartitionVector sqrt_grid(const Vertex& vertex, const PartitionVector& most, std::int64_t sites) {
  PartitionVector grid(most.size(), 1);
  if (const auto root = cube_root(sites); root && is_square(vertex) && most == PartitionVector(3, most[0])) {
    if (*root <= most[0]) return PartitionVector(3, *root);
  }
  std::vector<std::size_t> longest;
  for (const std::optional<std::size_t> label : result_labels(vertex)) {
    if (label) longest.push_back(*label);
  }
  std::stable_sort(longest.begin(), longest.end(), [&](std::size_t a, std::size_t b) { return most[a] > most[b]; });
  const std::int64_t wide = wider_side(sites);
  if (longest.size() == 1) grid[longest[0]] = std::min(sites, most[longest[0]]);
  if (longest.size() < 2) return grid;
  grid[longest[0]] = std::min(wide, most[longest[0]]);
  grid[longest[1]] = std::min(sites / wide, most[longest[1]]);
  return grid;
}

}  // namespace

Planned plan_single(const EinGraph& graph, const PlanRequest& request) {
  return plan_each(graph, request, [&](const Vertex& vertex) {
    VertexPlan plan = one_part_per_site(PartitionVector(label_extents(vertex).size(), 1));
    if (request.spmd && request.sites > 1) plan.copies = {{request.sites, 1}};
    return plan;
  });
}

Planned plan_sqrt(const EinGraph& graph, const PlanRequest& request) {
  return plan_each(graph, request, [&](const Vertex& vertex) {
    return one_part_per_site(sqrt_grid(vertex, most_parts(vertex, graph), request.sites));
  });
}

Planned plan_all_tile(const EinGraph& graph, const PlanRequest& request) {
  constexpr std::int64_t chunk = 1000;
  return plan_each(graph, request, [&](const Vertex& vertex) {
    VertexPlan plan;
    for (const std::int64_t extent : most_parts(vertex, graph)) plan.parts.push_back((extent + chunk - 1) / chunk);
    plan.grid = spread(plan.parts, request.sites).grid;
    std::vector<std::size_t> order(plan.grid.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    plan.strides = strides_in_order(plan.grid, order);
    return plan;
  });
}

}  // namespace einrel
