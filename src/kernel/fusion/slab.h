#pragma once

#include <cstdint>

#include "kernel/fusion/fusion.h"

namespace einrel {

/// The extent of a label that a fusion cuts.
std::int64_t cut_extent(const Fusion& fusion, const std::vector<std::size_t>& cut);

/// How many positions of the last of them are computed at a time: so many that what a slab reads and writes stays in
/// the second-level cache, at least one, and enough for vector instructions where the label is the last dimension.
std::int64_t slab_length(const Fusion& fusion);

/// The memory that what has no tensor takes for one slab.
std::int64_t slab_bytes(const Fusion& fusion);

}  // namespace einrel
