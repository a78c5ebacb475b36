#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"

/// Plans that a single program over one mesh of sites can say (SPMD): every site computes or copies, parts are even,
/// every digit of a site's number is made of whole axes of one mesh, sums are on all sites or shared out, and whatever
/// is moved is moved by collectives (plan/collectives.h).
namespace einrel {

/// One axis of the mesh: so many coordinates, whose step in a site's number is `stride`.
struct MeshAxis {
  std::int64_t size = 1;
  Site stride = 1;
  bool operator==(const MeshAxis&) const = default;
};

/// The mesh of so many sites: an axis for each prime factor, the major first.
std::vector<MeshAxis> mesh_of(std::int64_t sites);

/// The neighbouring axes, by position, major first, that a digit of a site's number is made of; nullopt where it begins
/// or ends inside of one. None of a digit of one coordinate.
std::optional<std::vector<std::size_t>> axes_of(const std::vector<MeshAxis>& mesh, std::int64_t count, Site stride);

/// Whether parts of the reductions of these vertices can be added up by one collective: shared out or on all.
bool can_scatter(const Vertex& vertex);
bool can_all_reduce(const Vertex& vertex);

/// Why no single program says how a vertex, or an input, is cut: "sites idle", say; "" where one does.
std::string spmd_fault(const Vertex& vertex, const VertexPlan& plan, const std::vector<MeshAxis>& mesh);
/// The first of a plan, with the tensor's name: of a vertex, or of what brings an operand to it.
std::string spmd_fault(const EinGraph& graph, const Plan& plan);

/// Every way to compute a vertex, or to lay out an input, that has no such fault. An input that is no state lies on as
/// few sites as it can: each element once where its extents allow that.
std::vector<VertexPlan> spmd_candidates(const EinGraph& graph, std::size_t vertex, std::int64_t sites);

}  // namespace einrel
