#include "kernel/evaluate.h"

#include <algorithm>

#include "base/error.h"
#include "einsum/graph/vertex_facts.h"
#include "kernel/elementwise/accumulate.h"
#include "kernel/elementwise/block_ops.h"
#include "kernel/elementwise/streaming.h"
#include "kernel/lapack.h"
#include "kernel/view.h"

namespace einrel {
namespace {

/// The same for every output element, whatever the body.
PreparedKernel reduction_of_nothing(const Vertex& vertex, const EinSum& einsum) {
  const Reducer reducer = *einsum.reducer;
  invariant(!has(reducer, ReducerTrait::needs_one), "an extreme needs at least one value");
  const auto fill = [reducer, computed = einsum.body.type(), dtype = vertex.dtype, count = element_count(vertex.bound)](
                        const Arrays& arrays, Workspace, std::int64_t) {
    Accumulators accumulators(reducer, computed, 1);
    accumulators.start({});
    const ReducedValues& nothing = accumulators.finish({}, 0);
    const auto size = static_cast<std::int64_t>(size_of(dtype));
    for (std::int64_t i = 0; i < count; ++i) {
      std::visit([&](const auto* value) { store_block(dtype, value, arrays.result + i * size, 0, 1); }, nothing);
    }
  };
  return {0, 0, {Stage{1, fill}}};
}

bool has_bindings(const std::vector<Label>& labels) {
  return std::none_of(labels.begin(), labels.end(), [](const Label& label) { return label.extent == Extent(0); });
}

}  // namespace

bool needs_kernel(const EinSum& einsum) { return has_bindings(einsum.labels); }

bool stays_in_no_cache(const ArrayLayout& result, const std::vector<ArrayLayout>& operands) {
  const auto bytes = [](const ArrayLayout& array) {
    return static_cast<double>(element_count(array.shape)) * static_cast<double>(size_of(array.dtype));
  };
  double all = bytes(result);
  for (const ArrayLayout& operand : operands) all += bytes(operand);
  return bytes(result) >= least_streamed_bytes && all >= 2 * least_streamed_bytes;
}

std::optional<KernelSpec> spec_of(const Vertex& vertex, const std::vector<ArrayLayout>& operands,
                                  const ScalarBindings& scalars) {
  if (!has_bindings(labels_of(vertex))) return std::nullopt;
  if (const View* const view = view_of(vertex)) return view_copy(*view, operands.at(0));
  const EinSum* const einsum = einsum_of(vertex);
  invariant(einsum != nullptr, "inputs and linear algebra are no loops over labels");
  const ArrayLayout result = row_major_layout(vertex.dtype, vertex.bound);
  return KernelSpec{*einsum, operands, result, scalars, false, stays_in_no_cache(result, operands)};
}

std::optional<Choice> choice_of(const Vertex& vertex, const std::vector<ArrayLayout>& operands,
                                const ScalarBindings& scalars, bool accumulate) {
  if (opaque_of(vertex) != nullptr) {
    if (!has_bindings(labels_of(vertex))) return std::nullopt;
    return choose_lapack(vertex, operands.at(0));
  }
  std::optional<KernelSpec> spec = spec_of(vertex, operands, scalars);
  if (!spec) return std::nullopt;
  spec->accumulate = accumulate;
  return choose_kernel(*spec);
}

PreparedKernel prepare(const Vertex& vertex, const std::vector<ArrayLayout>& operands, const ScalarBindings& scalars,
                       bool accumulate) {
  if (const std::optional<Choice> choice = choice_of(vertex, operands, scalars, accumulate)) {
    return choice->offer.prepare();
  }
  if (element_count(vertex.bound) == 0 || accumulate) return {};
  return reduction_of_nothing(vertex, std::get<EinSum>(vertex.op));
}

Tensor evaluate(const Vertex& vertex, const std::vector<Tensor>& operands, const ScalarBindings& scalars,
                Workers& workers) {
  std::vector<ArrayLayout> layouts;
  std::vector<const std::byte*> data;
  for (const Tensor& operand : operands) {
    layouts.push_back(layout_of(operand));
    data.push_back(operand.data());
  }
  if (const View* const view = view_of(vertex)) {
    auto shared = view_strides(*view, layouts.at(0).strides);
    if (shared) return operands[0].restrided(vertex.bound, std::move(*shared));
  }
  const PreparedKernel kernel = prepare(vertex, layouts, scalars);
  if (const Opaque* const opaque = opaque_of(vertex)) {
    std::vector<Tensor> results;
    std::vector<std::byte*> places;
    for (const Vertex& output : outputs_together(vertex))
      places.push_back(results.emplace_back(output.dtype, output.bound, workers.pool()).mutable_data());
    workers.run(kernel, {data.data(), places.front(), places.data()});
    return results[opaque->output];
  }
  Tensor result(vertex.dtype, vertex.bound, workers.pool());
  workers.run(kernel, {data.data(), result.mutable_data()});
  return result;
}

}  // namespace einrel
