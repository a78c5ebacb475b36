#pragma once

#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "plan/refine/polish.h"
#include "plan/search/sampled_cuts.h"
#include "plan/search/search.h"

namespace einrel {

/// EinDecomp as its paper has it (section 8): every vertex is cut into `calls` kernel calls, rounded down to a power of
/// two, or as many as its labels allow, one on each site, so that bound_of_plan is least. Optimal where no vertex but
/// inputs has several consumers. Else paths are taken, the longest first, each planned as if it were alone; a vertex
/// that is on no path before it is planned with its own. O(vertices * partitions of one * partitions of its inputs'
/// results).
Plan eindecomp_paper(const EinGraph& graph, std::int64_t calls);

/// What `eindecomp` chooses from: one part per site, on all sites; on fewer where a vertex may leave some idle; and the
/// same with the result shared out along one of two labels, but for `bound`, which does not know who owns what. `graph`
/// must outlive it. Of vertices with many labels, as many as take so many comparisons (SampledCuts).
Candidates site_candidates(const EinGraph& graph, std::int64_t sites, CostKind kind, std::vector<bool> may_idle,
                           double comparisons = SampledCuts::usual_comparisons);
/// The same: every vertex may where time counts, else small_vertices.
Candidates site_candidates(const EinGraph& graph, std::int64_t sites, const Machine& machine, CostKind kind,
                           double comparisons = SampledCuts::usual_comparisons);

/// Plans of other planners for so many sites.
using OtherPlans = std::function<std::vector<Plan>(std::int64_t sites)>;

/// Ways to cut a vertex over any number of sites that divides that of all, or has small factors alone; computed alike
/// by as many others as divide the rest. `graph` must outlive it.
Candidates all_candidates(const EinGraph& graph, std::int64_t sites, CostKind kind);

/// The plan after a polish by all candidates, of at most so many changes (changes_to_try), among plans that are
/// allowed, and use all sites where seconds do not count.
Plan polished_by_all(const EinGraph& graph, const Plan& plan, const Machine& machine, CostKind kind,
                     const AllowedPlans& is_allowed, std::int64_t changes);

/// About how many pairs of ways to cut neighbours a search for so many sites compares, equal neighbours once: it keeps
/// a number for each.
double pairs_compared(const EinGraph& graph, std::int64_t sites);

/// Which vertices are so small that computing each of them on one site takes, all together, at most a hundredth longer
/// than all vertices take on all sites, moving aside.
std::vector<bool> small_vertices(const EinGraph& graph, std::int64_t sites, const Machine& machine);

/// Whether vertices that are computed on fewer sites than their labels allow, all together, take at most a hundredth of
/// what all vertices take on all sites longer for it. Plans that leave more idle move less, down to nothing, so that
/// only time can tell whether that is better. What is made element by element on all sites alike, as data parallelism
/// makes new weights, may take longer, as long as not all takes twice the time. The starts of kernel calls, which every
/// site has, are left out.
bool uses_all_sites(const EinGraph& graph, const Plan& plan, const Machine& machine);

/// EinDecomp for any number of sites and any cost: the cheapest of several plans. One comes from a beam over all
/// vertices in order; of few vertices, others from paths as in the paper, on which tensors from and to vertices that
/// are planned already are charged, and from each of `others`. Each is improved vertex by vertex and path by path. None
/// of `others` is cheaper, but for those that leave sites idle where the cost is not seconds. The best of them is taken
/// where it is within 5 % of the least seconds found and moves no more.
/// What is found is polished. Where seconds count and `others_of_fewer` are given, the numbers of sites that divide
/// all, those behind links, and for few sites all others, are searched alike, as far as a plan for them may be faster;
/// each is polished a little, and the fastest as much as the first. Where bytes count, a plan by seconds is one of
/// `others`. None of this leads from a plan that is allowed to one that is not, and one that is not is not polished.
Plan eindecomp(const EinGraph& graph, std::int64_t sites, const Machine& machine, CostKind kind,
               const std::vector<Plan>& others, const OtherPlans& others_of_fewer = {},
               const AllowedPlans& is_allowed = {});

}  // namespace einrel
