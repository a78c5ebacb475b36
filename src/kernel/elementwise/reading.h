#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/elementwise/lanes.h"

namespace einrel {

/// The values of the operand at `data` at the lanes of a block, where the loops outside the block have brought the
/// quantities to `outer`. T is the type that the operand's elements load as (load_block).
template <class T>
void read_block(const Reading& reading, const std::byte* data, const Lanes& lanes, const std::int64_t* outer,
                T* values);

/// Whether every block is elements of the operand as they lie: contiguous, aligned, all inside, and stored in the type
/// that they load as.
bool is_in_place(const Reading& reading, const Lanes& lanes);

/// The elements of a block where they lie; nullptr where they do not lie as is_in_place says, or are not stored as T.
/// T may be BFloat16, too.
template <class T>
const T* in_place(const Reading& reading, const std::byte* data, const Lanes& lanes, const std::int64_t* outer);

}  // namespace einrel
