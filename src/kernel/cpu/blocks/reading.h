#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/cpu/blocks/lanes.h"

namespace einrel {

/// The values of the operand at `data` at the lanes of a block, where the loops outside the block have brought the
/// quantities to `outer`. T is the type that the operand's elements load as (load_block).
template <class T>
void read_block(const Reading& reading, const std::byte* data, const Lanes& lanes, const std::int64_t* outer,
                T* values);

/// The same elements where they lie, when they are contiguous, aligned and all inside; else nullptr. T must be the
/// type they are stored in.
template <class T>
const T* in_place(const Reading& reading, const std::byte* data, const Lanes& lanes, const std::int64_t* outer);

}  // namespace einrel
