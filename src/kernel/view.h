#pragma once

#include <optional>

#include "einsum/graph/ein_graph.h"
#include "kernel/spec.h"

namespace einrel {

/// The strides of the re-grouped tensor over the operand's own elements; nothing when it takes a copy.
std::optional<Strides> view_strides(const View& view, const Strides& operand);

/// What copies the operand's elements into a row-major tensor of the vertex, where view_strides are none.
KernelSpec view_copy(const View& view, const ArrayLayout& operand);

}  // namespace einrel
