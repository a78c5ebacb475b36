#pragma once

#include "plan/cost.h"
#include "plan/plan.h"
#include "plan/search.h"

namespace einrel {

/// EinDecomp as its paper has it (section 8): every vertex is cut into `calls` kernel calls, rounded down to a power of
/// two, or as many as its labels allow, one on each site, so that bound_of_plan is least. Optimal where no vertex but
/// inputs has several consumers. Else paths are taken, the longest first, each planned as if it were alone; a vertex
/// that is on no path before it is planned with its own. O(vertices * partitions of one * partitions of its inputs'
/// results).
Plan eindecomp_paper(const EinGraph& graph, std::int64_t calls);

/// What `eindecomp` chooses from: one part per site, on all sites; on fewer where time counts, and of small_vertices.
/// `graph` must outlive it.
Candidates site_candidates(const EinGraph& graph, std::int64_t sites, const Machine& machine, CostKind kind);

/// Which vertices are so small that computing each of them on one site takes, all together, at most a hundredth longer
/// than all vertices take on all sites, moving aside.
std::vector<bool> small_vertices(const EinGraph& graph, std::int64_t sites, const Machine& machine);

/// Whether every vertex but small_vertices is computed on as many sites as its labels allow. Plans that leave sites idle
/// move less, down to nothing, so that only time can tell whether that is better.
bool uses_all_sites(const EinGraph& graph, const Plan& plan, const Machine& machine);

/// EinDecomp for any number of sites and any cost: paths as in the paper, but tensors of vertices that are planned
/// already, and tensors that they need, are charged; then vertices are planned again one by one beside all others, from
/// there and from each of `others`, and the cheapest of all is taken, so that none of them is cheaper. Costs other than
/// seconds take no plan that leaves sites idle.
Plan eindecomp(const EinGraph& graph, std::int64_t sites, const Machine& machine, CostKind kind,
               const std::vector<Plan>& others);

}  // namespace einrel
