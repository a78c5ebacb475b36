#pragma once

#include "einsum/ein_graph.h"
#include "kernel/nest.h"
#include "tensor/tensor.h"

namespace einrel {

/// Any EinSum with at least one output element and no reduction over nothing: loops around a program that computes a
/// block of values at a time. Needs memory for the result and, besides, some kilobytes per step of the body.
Tensor interpret(const Vertex& vertex, const EinSum& einsum, const LoopNest& nest, const ScalarBindings& scalars);

}  // namespace einrel
