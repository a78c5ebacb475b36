#pragma once

#include <optional>
#include <vector>

#include "einsum/graph/ein_graph.h"
#include "kernel/registry.h"
#include "kernel/spec.h"
#include "kernel/workers.h"
#include "tensor/tensor.h"

namespace einrel {

/// One vertex that computes; `operands` in the order of vertex.inputs, of any strides and alignment. Agrees with
/// evaluate_reference: exactly for integers, for floats to the bound that the chosen kernel states. Needs memory for
/// the result and the workspaces of the kernel; a View shares its operand's memory where it can. The same operands give
/// the same bits, whatever the number of workers. Throws RunError when there is no memory for the result, UserError
/// when an index or the number of label bindings leaves 63 bits, or a matrix has no inverse.
Tensor evaluate(const Vertex& vertex, const std::vector<Tensor>& operands, const ScalarBindings& scalars,
                Workers& workers);

/// One vertex (of a View the copy that it takes where view_strides are none), made ready for operands of these layouts
/// and a row-major result; `accumulate` as in KernelSpec. Throws UserError as evaluate does.
PreparedKernel prepare(const Vertex& vertex, const std::vector<ArrayLayout>& operands, const ScalarBindings& scalars,
                       bool accumulate = false);

/// The kernel for that, and why. Nothing where there is nothing to compute (spec_of).
std::optional<Choice> choice_of(const Vertex& vertex, const std::vector<ArrayLayout>& operands,
                                const ScalarBindings& scalars, bool accumulate = false);

/// What a kernel of the registry computes for that, where it is an EinSum or a View. Nothing where there is nothing to
/// compute: the result has no elements, or each of them is a reduction of nothing.
std::optional<KernelSpec> spec_of(const Vertex& vertex, const std::vector<ArrayLayout>& operands,
                                  const ScalarBindings& scalars);

/// Whether an EinSum has a spec: the result has elements, and each of them reduces at least one value.
bool needs_kernel(const EinSum& einsum);

/// KernelSpec::large_result, of a result that is computed from operands in memory.
bool stays_in_no_cache(const ArrayLayout& result, const std::vector<ArrayLayout>& operands);

}  // namespace einrel
