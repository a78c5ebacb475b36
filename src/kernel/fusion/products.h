#pragma once

#include "kernel/fusion/fusion.h"

namespace einrel {

/// Of the tensor that a vertex computes.
double result_bytes(const Vertex& vertex);

/// Scalars to choose kernels by: those without a value count as 1.
ScalarBindings some_scalars(const EinGraph& graph);

/// Whether a vertex works in proportion to its data: it is no matrix multiplication.
bool is_light(const EinGraph& graph, const Vertex& vertex);

/// Whether a vertex is a reduction whose result is too large for a cache, and each element of which takes not much
/// longer to compute than to write and to read again.
bool is_short_product(const EinGraph& graph, const Vertex& vertex);

bool holds_products(const Fusion& fusion);

/// Whether a fusion has products, and each of them takes no longer in slabs, where it reads and packs some operands
/// anew for each, than at once with reading its result from memory. By the kernels' models, for row-major inputs.
bool pays(const Fusion& fusion);

}  // namespace einrel
