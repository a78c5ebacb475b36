#include "plan/spmd.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "einsum/graph/vertex_facts.h"
#include "plan/collectives.h"
#include "plan/layout.h"
#include "plan/placed_inputs.h"
#include "plan/routes.h"

namespace einrel {
namespace {

std::int64_t sites_of(const std::vector<MeshAxis>& mesh) {
  return mesh.empty() ? 1 : mesh.front().size * mesh.front().stride;
}

/// How many equal parts each label is to have: of the one along which a result is shared out more than are computed.
std::vector<std::int64_t> even_parts(const Vertex& vertex, const VertexPlan& plan) {
  return with_scattered_result(vertex, plan).grid;
}

bool is_reduced_by(const Vertex& vertex, std::initializer_list<Reducer> reducers) {
  const EinSum* const einsum = einsum_of(vertex);
  return einsum != nullptr && einsum->reducer &&
         std::find(reducers.begin(), reducers.end(), *einsum->reducer) != reducers.end();
}

std::string reduction_fault(const Vertex& vertex, const VertexPlan& plan) {
  if (plan.scatter && can_scatter(vertex)) return "";
  if (plan.all_reduced && can_all_reduce(vertex)) return "";
  const bool has_collective = can_scatter(vertex) || can_all_reduce(vertex);
  return has_collective ? "its partial results are added up on one site"
                        : fmt::format("no collective adds up parts of {}", name_of(*einsum_of(vertex)->reducer));
}

/// Labels and copies to which the first axes of a mesh were given.
struct AxesGiven {
  VertexPlan plan;
  std::optional<std::size_t> last;  ///< the label that got the axis before, if one did
  std::size_t cut = 0;              ///< labels
};

void give_to_copies(const MeshAxis& axis, std::vector<SiteCopies>& copies) {
  if (!copies.empty() && copies.front().stride == axis.stride * axis.size) {
    copies.front() = {copies.front().count * axis.size, axis.stride};
  } else {
    copies.insert(copies.begin(), {axis.size, axis.stride});  // ascending by stride
  }
}

/// Every way to give each axis of a mesh to one of at most so many labels, each of which gets neighbouring ones, or to
/// copies.
std::vector<VertexPlan> assignments(const std::vector<MeshAxis>& mesh, const Shape& extents,
                                    const PartitionVector& most, std::size_t most_cut) {
  std::vector<AxesGiven> ways{{one_part_per_site(PartitionVector(extents.size(), 1)), std::nullopt, 0}};
  for (const MeshAxis& axis : mesh) {
    std::vector<AxesGiven> longer;
    for (AxesGiven& way : ways) {
      for (std::size_t l = 0; l < extents.size(); ++l) {
        const bool goes_on = way.last == l;
        const std::int64_t parts = way.plan.grid[l] * axis.size;
        if (!goes_on && (way.plan.grid[l] > 1 || way.cut == most_cut)) continue;
        if (parts > most[l] || extents[l].value() % parts != 0) continue;
        AxesGiven& next = longer.emplace_back(AxesGiven{way.plan, l, way.cut + (goes_on ? 0 : 1)});
        next.plan.grid[l] = next.plan.parts[l] = parts;
        next.plan.strides[l] = axis.stride;
      }
      give_to_copies(axis, way.plan.copies);
      way.last.reset();
      longer.push_back(std::move(way));
    }
    ways = std::move(longer);
  }
  std::vector<VertexPlan> plans;
  for (AxesGiven& way : ways) plans.push_back(std::move(way.plan));
  return plans;
}

/// Of vertices with many labels over many axes, those ways that cut few labels.
std::vector<VertexPlan> assignments(const std::vector<MeshAxis>& mesh, const Shape& extents,
                                    const PartitionVector& most) {
  constexpr double many = 4000;
  std::size_t cut = std::min(mesh.size(), extents.size());
  const auto ways = [&](std::size_t labels) {
    double count = 1;
    for (std::size_t i = 0; i < mesh.size(); ++i)
      count *= static_cast<double>(i < labels ? extents.size() + 1 : labels + 1);
    return count;
  };
  while (cut > 1 && ways(cut) > many) --cut;
  return assignments(mesh, extents, most, cut);
}

std::vector<VertexPlan> input_candidates(const EinGraph& graph, std::size_t v, const std::vector<MeshAxis>& mesh) {
  const Vertex& vertex = graph.vertices[v];
  if (const std::optional<VertexPlan> given = given_plan(vertex)) return {*given};
  PartitionVector most;
  for (const Extent extent : vertex.bound) most.push_back(extent.value());
  std::vector<VertexPlan> plans = assignments(mesh, vertex.bound, most);
  if (is_state(graph, v)) return plans;
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (const VertexPlan& plan : plans) fewest = std::min(fewest, copies_of(plan));
  std::erase_if(plans, [&](const VertexPlan& plan) { return copies_of(plan) > fewest; });
  return plans;
}

/// A way to compute parts of results, with all ways to add them up.
void add_reduced(const Vertex& vertex, const VertexPlan& plan, const PartitionVector& most,
                 const std::vector<MeshAxis>& mesh, std::vector<VertexPlan>& plans) {
  VertexPlan everywhere = plan;
  everywhere.all_reduced = true;
  if (spmd_fault(vertex, everywhere, mesh).empty()) plans.push_back(everywhere);
  for (const std::size_t label : std::get<EinSum>(vertex.op).output) {
    VertexPlan shared = plan;
    shared.scatter = label;
    shared.parts[label] *= partial_sites(vertex, plan);
    if (shared.parts[label] <= most[label] && spmd_fault(vertex, shared, mesh).empty())
      plans.push_back(std::move(shared));
  }
}

}  // namespace

std::vector<MeshAxis> mesh_of(std::int64_t sites) {
  std::vector<MeshAxis> mesh;
  for (const std::int64_t prime : prime_factors(sites)) mesh.push_back({prime, sites /= prime});
  return mesh;
}

std::optional<std::vector<std::size_t>> axes_of(const std::vector<MeshAxis>& mesh, std::int64_t count, Site stride) {
  std::vector<std::size_t> axes;
  std::int64_t coordinates = 1;
  for (std::size_t a = 0; a < mesh.size() && count > 1; ++a) {
    if (mesh[a].stride < stride || mesh[a].stride >= count * stride) continue;
    axes.push_back(a);
    coordinates *= mesh[a].size;
  }
  const bool ends_with_one = axes.empty() || mesh[axes.back()].stride == stride;
  return coordinates == count && ends_with_one ? std::optional(axes) : std::nullopt;
}

bool can_scatter(const Vertex& vertex) { return is_reduced_by(vertex, {Reducer::sum, Reducer::sumsq, Reducer::mean}); }

bool can_all_reduce(const Vertex& vertex) {
  return can_scatter(vertex) || is_reduced_by(vertex, {Reducer::max, Reducer::min, Reducer::any, Reducer::all});
}

std::string spmd_fault(const Vertex& vertex, const VertexPlan& plan, const std::vector<MeshAxis>& mesh) {
  const std::vector<std::string> names = label_names(vertex);
  const std::int64_t used = sites_used(plan) * copies_of(plan);
  if (used != sites_of(mesh)) {
    return fmt::format("{} of {} sites {} it, and the others have no copy", used, sites_of(mesh),
                       is_input(vertex) ? "have" : "compute");
  }
  for (std::size_t l = 0; l < plan.grid.size(); ++l) {
    if (!axes_of(mesh, plan.grid[l], plan.strides[l]))
      return fmt::format("the sites along {} are no axes of the mesh", label_title(vertex, l));
  }
  for (const SiteCopies& copies : plan.copies) {
    if (!axes_of(mesh, copies.count, copies.stride)) return "its copies are no axes of the mesh";
  }
  const std::int64_t partial = partial_sites(vertex, plan);
  if (partial > 1) {
    if (!plan.copies.empty()) return copies_fault(vertex, plan);
    if (std::string fault = reduction_fault(vertex, plan); !fault.empty()) return fault;
    if (plan.scatter && !numbers_scatter(vertex, plan)) return "no axes share its sum out";
  }
  const std::vector<std::int64_t> even = even_parts(vertex, plan);
  const Shape extents = label_extents(vertex);
  for (std::size_t l = 0; l < even.size(); ++l) {
    if (plan.parts[l] != even[l]) return fmt::format("sites have several parts of {}", label_title(vertex, l));
    if (extents[l].value() % even[l] != 0)
      return fmt::format("{} does not divide {}={}", even[l], label_title(vertex, l), extents[l].value());
  }
  return "";
}

namespace {

/// Why no collectives bring an operand, or the next value of a state, to where a plan needs it; "" where there are
/// some.
std::string moves_fault(const EinGraph& graph, const Plan& plan, const std::vector<MeshAxis>& mesh) {
  Transfers transfers(plan.sites);
  const Routes routes(graph, plan, transfers);
  const auto fault = [&](std::size_t tensor, std::optional<std::size_t> route, VertexId reader) -> std::string {
    if (!route) return "";
    const Sharding have = sharding_of(routes.source(tensor, *route), mesh);
    const Sharding need = sharding_of(routes.route(tensor, *route).need, mesh);
    const std::string reason = collectives_fault(have, need, mesh);
    if (reason.empty()) return "";
    return fmt::format(
        "no single program for all sites computes {}: {} would have to be cut anew in a way that has no "
        "collectives: {}",
        graph[reader].name, graph.vertices[tensor].name, reason);
  };
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    for (const std::size_t operand : operands_read(graph.vertices[v])) {
      std::string found = fault(graph.vertices[v].inputs[operand].index, routes.route_of(v, operand), VertexId{v});
      if (!found.empty()) return found;
    }
  }
  for (std::size_t s = 0; s < graph.steps.states.size(); ++s) {
    const State& state = graph.steps.states[s];
    if (!state.next) continue;
    std::string found = fault(graph.outputs[*state.next].index, routes.route_of_state(s), state.now);
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace

std::string spmd_fault(const EinGraph& graph, const Plan& plan) {
  const std::vector<MeshAxis> mesh = mesh_of(plan.sites);
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    std::string fault = spmd_fault(graph.vertices[v], plan.vertices[v], mesh);
    const PartitionVector most = most_parts_apart(graph.vertices[v], graph);
    for (std::size_t l = 0; l < most.size() && fault.empty(); ++l) {
      if (plan.vertices[v].parts[l] > most[l])
        fault = fmt::format("no collective moves the halos of {}", label_title(graph.vertices[v], l));
    }
    if (!fault.empty())
      return fmt::format("no single program for all sites computes {}: {}", graph.vertices[v].name, fault);
  }
  return moves_fault(graph, plan, mesh);
}

std::vector<VertexPlan> spmd_candidates(const EinGraph& graph, std::size_t v, std::int64_t sites) {
  const std::vector<MeshAxis> mesh = mesh_of(sites);
  const Vertex& vertex = graph.vertices[v];
  if (is_input(vertex)) return input_candidates(graph, v, mesh);
  std::vector<VertexPlan> plans;
  const PartitionVector most = most_parts_apart(vertex, graph);
  for (VertexPlan& plan : assignments(mesh, label_extents(vertex), most)) {
    if (partial_sites(vertex, plan) == 1) {
      plans.push_back(std::move(plan));
    } else if (plan.copies.empty()) {
      add_reduced(vertex, plan, most, mesh, plans);
    }
  }
  return plans;
}

}  // namespace einrel
