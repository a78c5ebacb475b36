#pragma once

#include "plan/plan.h"

namespace einrel {

// The cost model `bound`: floats that are moved in the worst case, where every chunk comes from elsewhere (EinDecomp,
// section 7). Chunks of extents that their parts do not divide count as large as the largest.

/// Of the largest chunk of a tensor with this bound that is cut into so many parts along each dimension.
double chunk_elements(const Shape& bound, const PartitionVector& parts);

/// Transferring into the join: N * (n_X + n_Y + ...), with N the kernel calls (the product of d over the labels) and
/// n_X the elements of a chunk of X. Transferring into the aggregation: N / n_agg * (n_agg - 1) * n_Z, with n_agg the
/// product of d over what is reduced and n_Z the elements of a chunk of the result. 0 for an Input; a View is a join
/// of one operand.
double bound_of_vertex(const Vertex& vertex, const EinGraph& graph, const PartitionVector& parts);

/// Of a tensor with this bound from one cut to another: n / n_c * (n_c / n_int - 1) * n_c to put a consumer's chunks
/// together, of n_int elements each, and n / n_int * n_p to cut a producer's, unless they are used whole. 0 where the
/// cuts are equal.
double bound_of_repartition(const Shape& bound, const PartitionVector& from, const PartitionVector& to);
/// The same from each of these cuts to each of those: [from * to.size() + to].
std::vector<double> bounds_of_repartitions(const Shape& bound, const std::vector<PartitionVector>& from,
                                           const std::vector<PartitionVector>& to);

/// Of a whole plan. Inputs are cut as their consumers want, at no cost.
double bound_of_plan(const EinGraph& graph, const std::vector<PartitionVector>& parts);

}  // namespace einrel
