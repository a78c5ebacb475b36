#pragma once

#include "kernel/kernel.h"

namespace einrel {

/// Any EinSum, as a program over blocks of up to 1024 values: element-wise bodies in one pass, reductions in double
/// (floats) or exactly (integers). Error of a sum of n floats: (1 + n * 2^-29) units in the last place of f32 beside
/// the rounding of each term; of f64 at most n units.
KernelInfo blocks_kernel();

}  // namespace einrel
