#pragma once

#include <optional>

#include "tra/kernel.h"

namespace einrel {

/// The kernel for an argument that holds the numbers first, first + 1, ..., one per position of its only dimension: it
/// works them out and takes `first`, as i64 of rank 0, behind all other arguments instead. nullopt where it reads the
/// argument in another way than along a label.
std::optional<Kernel> without_positions(const Kernel& kernel, std::size_t argument, Extent extent);

/// The kernel that makes such an array of `first`.
Kernel positions_kernel(Extent extent);

}  // namespace einrel
