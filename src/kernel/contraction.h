#pragma once

#include <optional>

#include "einsum/ein_graph.h"
#include "kernel/nest.h"
#include "tensor/tensor.h"

namespace einrel {

/// An EinSum that sums the product of two operands, by matrix multiplications of BLAS; nullopt when it is something
/// else, or too small to gain, or there is no BLAS. In place where strides allow, else through packed panels of
/// bounded size (windows, padding, bf16 and f16, odd strides).
std::optional<Tensor> contract(const Vertex& vertex, const EinSum& einsum, const LoopNest& nest);

}  // namespace einrel
