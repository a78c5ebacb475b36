#pragma once

#include "kernel/registry.h"

namespace einrel {

/// The only kernel of linear algebra: LAPACK's LU factorization and the inverse from it (getrf, getri), its QR
/// factorization and Q from it (gelqf, orglq), in the place of the results: all that the function has
/// (outputs_together), whichever of them `vertex` is. Every matrix is a part, computed on one thread, so that bits do
/// not depend on the number of threads. `vertex` is an Opaque with batches and rows, `operand` the array that it reads,
/// of any strides. The kernel throws UserError with singular_text for a singular matrix; this does where a matrix has
/// too many rows for the workspace, and the offer's `prepare` throws RunError where no LAPACK is installed.
Choice choose_lapack(const Vertex& vertex, const ArrayLayout& operand);

/// What `einrel list kernels` says.
struct KernelNote {
  std::string_view name;
  std::string_view computes;
  std::string_view library;
};
KernelNote lapack_note();

}  // namespace einrel
