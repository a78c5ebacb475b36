#include "kernel/evaluate.h"

#include <algorithm>

#include "base/error.h"
#include "kernel/accumulate.h"
#include "kernel/block_ops.h"
#include "kernel/contraction.h"
#include "kernel/interpreter.h"
#include "kernel/nest.h"
#include "kernel/view.h"

namespace einrel {
namespace {

bool reduces_nothing(const EinSum& einsum) {
  return std::any_of(einsum.reduced.begin(), einsum.reduced.end(),
                     [&](std::size_t label) { return einsum.labels[label].extent == Extent(0); });
}

/// The same for every output element, whatever the body.
Tensor reduction_of_nothing(const Vertex& vertex, const EinSum& einsum) {
  const Reducer reducer = *einsum.reducer;
  invariant(
      reducer != Reducer::max && reducer != Reducer::min && reducer != Reducer::argmax && reducer != Reducer::argmin,
      "an extreme needs at least one value");
  Tensor result(vertex.dtype, vertex.bound);
  Accumulators accumulators(reducer, is_float(einsum.body.type()));
  accumulators.start(1);
  const ReducedValues nothing = accumulators.finish(0);
  const std::size_t size = size_of(vertex.dtype);
  for (std::int64_t i = 0; i < result.count(); ++i) {
    std::byte* const to = result.mutable_data() + static_cast<std::size_t>(i) * size;
    std::visit([&](const auto* value) { store_block(vertex.dtype, value, to, 0, 1); }, nothing);
  }
  return result;
}

Tensor evaluate_op(const Vertex& vertex, const EinSum& einsum, const std::vector<Tensor>& operands,
                   const ScalarBindings& scalars) {
  if (element_count(vertex.bound) == 0) return Tensor(vertex.dtype, vertex.bound);
  if (reduces_nothing(einsum)) return reduction_of_nothing(vertex, einsum);
  const LoopNest nest = make_nest(einsum, operands);
  if (std::optional<Tensor> result = contract(vertex, einsum, nest)) return *std::move(result);
  return interpret(vertex, einsum, nest, scalars);
}

Tensor evaluate_op(const Vertex& vertex, const View& view, const std::vector<Tensor>& operands, const ScalarBindings&) {
  return evaluate_view(vertex, view, operands.at(0));
}

Tensor evaluate_op(const Vertex&, const Input&, const std::vector<Tensor>&, const ScalarBindings&) {
  throw Bug("an input has nothing to evaluate");
}

}  // namespace

Tensor evaluate(const Vertex& vertex, const std::vector<Tensor>& operands, const ScalarBindings& scalars) {
  return std::visit([&](const auto& op) { return evaluate_op(vertex, op, operands, scalars); }, vertex.op);
}

}  // namespace einrel
