#pragma once

#include <cstdint>

#include "kernel/fusion/fusion.h"
#include "machine/processor.h"

namespace einrel {

/// Tensors of so many bytes stay in no second-level cache.
inline constexpr std::int64_t least_large_bytes = 4 * nominal_processor.second_cache;

/// The extent of a label that a fusion cuts.
std::int64_t cut_extent(const Fusion& fusion, const std::vector<std::size_t>& cut);

/// What a slab may have for all of it to stay in the second-level cache, of which processors of today have 256 KiB to
/// 2 MiB: half of nominal_processor's. With products it may have all of that, which not everywhere stays: packing anew
/// for shorter slabs takes longer.
std::int64_t cached_bytes(const Fusion& fusion);

/// Whether the last label that is cut is the last dimension of a vertex of several.
bool is_last_dimension(const Fusion& fusion, std::size_t v);

/// How many positions of the last of them are computed at a time: so many that what a slab reads and writes stays in
/// the second-level cache, at least one, and enough for vector instructions where the label is the last dimension.
std::int64_t slab_length(const Fusion& fusion);

/// The memory that what has no tensor takes for one slab.
std::int64_t slab_bytes(const Fusion& fusion);

/// KernelSpec::large_operands, of a slab's member: what comes from outside has the shape of its whole tensor.
bool reads_large_operands(const KernelSpec& spec);

/// Whether an index, or one of an access, depends on a label.
bool mentions(const Index& index, std::size_t label);
bool mentions(const Access& access, std::size_t label);

}  // namespace einrel
