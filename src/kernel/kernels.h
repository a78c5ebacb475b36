#pragma once

#include "kernel/kernel.h"

namespace einrel {

/// Z[...] = X[...] in another order or layout, elements as they are: transposes, chunks cut out of tensors and put
/// together again. Exact. Works on tiles that stay in the first-level cache where what is contiguous differs.
KernelInfo copy_kernel();

/// Z[...] = where(i < n, X[...], Y[...]) for a label i and numbers n: each range of the label by the kernel that suits
/// it, without a look at what is not chosen there. So tensors that are put together are copied.
KernelInfo pieces_kernel();

/// Sums and choices of elements of one tensor over labels that are selected (einsum/graph/selection.h), which are not
/// looped over: gathers copy rows, scatters sort what comes together by counting and add it up in double, or exactly,
/// in the order of its positions.
KernelInfo select_kernel();

/// Any EinSum, as a program over blocks of up to 1024 values: element-wise bodies in one pass, reductions in double
/// (floats) or exactly (integers). Error of a sum of n floats: (1 + n * 2^-29) units in the last place of f32 beside
/// the rounding of each term; of f64 at most n units.
KernelInfo blocks_kernel();

// Z = reduce of join(X, Y) of two operands: contractions (sums of x * y), distances (sums of (x - y)^2 or |x - y|, the
// largest |x - y|), shortest and longest paths (min or max of x + y), and every other combination of the joins
// x * y, x + y, (x - y)^2, |x - y|, max(x, y), min(x, y) with the reducers sum, mean, max, min. And Z = X * Y without
// a reduction where X and Y have labels of their own: outer products, which are exact.
//
// Sums of f32, bf16 and f16 are computed in f32, of f64 in f64; with u the rounding error of that type (2^-24, 2^-53),
// a sum of n terms t is within (n + 4) * u * sum |t| of the exact one, and then rounded to the type of the result. Of
// two operands in bf16 it may be n * 2^-126 further off: with the processor's own products, sums below the normal range
// are 0. Integers are exact modulo 2^32 or 2^64. max and min are exact, and NaN if any value is. The bits depend on the
// spec and on the instruction set, not on the number of threads.

/// Through packed panels: operands of any strides, windows, padding and types. The fastest for large products.
KernelInfo packed_kernel();

/// In place, where the columns, rows or batch lie side by side in an operand and the result. The fastest for small
/// products, batches of them, thin ones, and outer products that stay in a cache.
KernelInfo direct_kernel();

/// Where an operand is read in windows that overlap, as in convolutions: from a copy that holds each element once.
KernelInfo windows_kernel();

/// With vectors along a reduced loop that is contiguous in one operand, where the other has few columns or rows: as
/// matrices times vectors, at the speed of memory.
KernelInfo dot_kernel();

}  // namespace einrel
