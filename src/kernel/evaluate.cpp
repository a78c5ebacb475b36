#include "kernel/evaluate.h"

#include <algorithm>

#include "base/error.h"
#include "kernel/cpu/blocks/accumulate.h"
#include "kernel/cpu/blocks/block_ops.h"
#include "kernel/cpu/blocks/streaming.h"
#include "kernel/registry.h"
#include "kernel/view.h"

namespace einrel {
namespace {

/// The same for every output element, whatever the body.
Tensor reduction_of_nothing(const Vertex& vertex, const EinSum& einsum) {
  const Reducer reducer = *einsum.reducer;
  invariant(
      reducer != Reducer::max && reducer != Reducer::min && reducer != Reducer::argmax && reducer != Reducer::argmin,
      "an extreme needs at least one value");
  Tensor result(vertex.dtype, vertex.bound);
  Accumulators accumulators(reducer, einsum.body.type(), 1);
  accumulators.start({});
  const ReducedValues& nothing = accumulators.finish({}, 0);
  const std::size_t size = size_of(vertex.dtype);
  for (std::int64_t i = 0; i < result.count(); ++i) {
    std::byte* const to = result.mutable_data() + static_cast<std::size_t>(i) * size;
    std::visit([&](const auto* value) { store_block(vertex.dtype, value, to, 0, 1); }, nothing);
  }
  return result;
}

Tensor evaluate_op(const Vertex& vertex, const EinSum& einsum, const std::vector<Tensor>& operands,
                   const ScalarBindings& scalars, Workers& workers) {
  if (element_count(vertex.bound) == 0) return Tensor(vertex.dtype, vertex.bound);
  if (!needs_kernel(einsum)) return reduction_of_nothing(vertex, einsum);
  std::vector<ArrayLayout> layouts;
  std::vector<const std::byte*> data;
  for (const Tensor& operand : operands) {
    layouts.push_back(layout_of(operand));
    data.push_back(operand.data());
  }
  const Choice choice = choose_kernel(spec_of(vertex, std::move(layouts), scalars));
  Tensor result(vertex.dtype, vertex.bound, workers.pool());
  workers.run(choice.offer.prepare(), {data.data(), result.mutable_data()});
  return result;
}

Tensor evaluate_op(const Vertex& vertex, const View& view, const std::vector<Tensor>& operands, const ScalarBindings&,
                   Workers&) {
  return evaluate_view(vertex, view, operands.at(0));
}

Tensor evaluate_op(const Vertex&, const Input&, const std::vector<Tensor>&, const ScalarBindings&, Workers&) {
  throw Bug("an input has nothing to evaluate");
}

}  // namespace

bool needs_kernel(const EinSum& einsum) {
  return std::none_of(einsum.labels.begin(), einsum.labels.end(),
                      [](const Label& label) { return label.extent == Extent(0); });
}

bool stays_in_no_cache(const Vertex& vertex) {
  return element_count(vertex.bound) >= least_streamed_bytes / static_cast<std::int64_t>(size_of(vertex.dtype));
}

KernelSpec spec_of(const Vertex& vertex, std::vector<ArrayLayout> operands, const ScalarBindings& scalars) {
  return {
      std::get<EinSum>(vertex.op), std::move(operands), row_major_layout(vertex.dtype, vertex.bound), scalars, false,
      stays_in_no_cache(vertex)};
}

Tensor evaluate(const Vertex& vertex, const std::vector<Tensor>& operands, const ScalarBindings& scalars,
                Workers& workers) {
  return std::visit([&](const auto& op) { return evaluate_op(vertex, op, operands, scalars, workers); }, vertex.op);
}

}  // namespace einrel
