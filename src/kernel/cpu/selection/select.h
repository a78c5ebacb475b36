#pragma once

#include "kernel/kernel.h"

namespace einrel {

/// Sums and choices of elements of one tensor over labels that are selected (einsum/selection.h), which are not looped
/// over: gathers copy rows, scatters sort what comes together by counting and add it up in double, or exactly, in the
/// order of its positions.
KernelInfo select_kernel();

}  // namespace einrel
