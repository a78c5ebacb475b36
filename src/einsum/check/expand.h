#pragma once

#include "einsum/check/check.h"
#include "einsum/front/build/program.h"

namespace einrel {

/// The program that a checked one comes to: no macros and no gradients are left, and each statement is one vertex.
/// Checking it gives the same graph, but for names of labels: those that have several extents get a number.
/// All extents must be known. O(size of the graph).
build::Program expanded(const CheckedProgram& program);

}  // namespace einrel
