#pragma once

#include "einsum/graph/ein_graph.h"

namespace einrel {

/// Makes plain joins of reductions over two computed values, since only a join of tensor reads has fast kernels:
///   Z[i,k] = sum[j] relu(A[i,j]) * B[j,k]  =>  Z_1[i,j] = relu(A[i,j]) ; Z[i,k] = sum[j] Z_1[i,j] * B[j,k]
/// for sums, means, maxima and minima of x*y, x+y, x-y, max(x,y), min(x,y), abs(x-y) and sq(x-y). A value becomes a
/// tensor of its own where that saves work and its bytes are in proportion (factor_split.cpp says how many). What all
/// values of a reduction go through alike is applied to its result: for sums and means factors and divisors without
/// reduced labels, for maxima and minima of floats numbers added, multiplied or divided by; a negative one makes a
/// minimum of the maximum. Integers, and maxima and minima, stay the same bits but for the sign of zeros; sums round as
/// any order of computing them does. Types stay as written.
EinGraph split_factors(const EinGraph& graph);

}  // namespace einrel
