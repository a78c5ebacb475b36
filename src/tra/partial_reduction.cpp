#include "tra/partial_reduction.h"

#include <initializer_list>
#include <limits>
#include <utility>

#include "base/error.h"
#include "einsum/expr/scalar_expr.h"
#include "tra/named_kernels.h"

namespace einrel {
PartialReduction partial_reduction(Reducer reducer, ScalarExpr body, std::size_t rank) {
  const DType dtype = reduced_type(reducer, body.type());
  if (reducer == Reducer::mean && body.type() != dtype) body.steps.push_back({dtype, Convert{}});
  const PartialResults partial = partial_results(reducer);
  invariant(!partial.fold.empty(), "positions of extremes are not folded");
  return {partial.each, std::move(body), dtype, named_kernel(partial.fold, {dtype, dtype}, {rank, rank})};
}

std::optional<ScalarExpr> finished_reduction(Reducer reducer, DType partial, DType dtype,
                                             const std::vector<std::size_t>& reduced,
                                             const std::vector<Label>& labels) {
  if (reducer != Reducer::mean && partial == dtype) return std::nullopt;
  ScalarExpr body{{{partial, OperandValue{0}}}};
  if (reducer == Reducer::mean) {
    double count = 1;
    for (const std::size_t label : reduced) count *= static_cast<double>(labels[label].extent.value());
    body.steps.push_back({partial, Constant{count}});
    body.steps.push_back({partial, ApplyBinary{BinaryFunction::divide}});
  }
  return body;
}

ScalarExpr position_where_equal(const ScalarExpr& value, const ScalarStep& extreme,
                                const std::vector<std::size_t>& reduced, const std::vector<Label>& labels) {
  const ScalarExpr most{{extreme}};
  const ScalarExpr equal{{{DType::boolean, ApplyBinary{BinaryFunction::equal}}}};
  const ScalarExpr differs{{{DType::boolean, ApplyBinary{BinaryFunction::not_equal}}}};
  const ScalarExpr where{{{DType::boolean, ApplyWhere{}}}};
  ScalarExpr body;
  const auto add = [&](std::initializer_list<const ScalarExpr*> parts) {
    for (const ScalarExpr* const part : parts)
      body.steps.insert(body.steps.end(), part->steps.begin(), part->steps.end());
  };
  add({&value, &most, &equal});
  if (is_float(value.type())) {  // where(v == m, v == m, where(v != v, m != m, v != v)), as the language can write it
    add({&value, &most, &equal, &value, &value, &differs, &most, &most, &differs, &value, &value, &differs, &where,
         &where});
  }
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    if (i > 0) {
      body.steps.push_back({DType::i64, Constant{labels[reduced[i]].extent.value()}});
      body.steps.push_back({DType::i64, ApplyBinary{BinaryFunction::multiply}});
    }
    body.steps.push_back({DType::i64, LabelValue{reduced[i]}});
    if (i > 0) body.steps.push_back({DType::i64, ApplyBinary{BinaryFunction::add}});
  }
  body.steps.push_back({DType::i64, Constant{std::numeric_limits<std::int64_t>::max()}});
  body.steps.push_back({DType::i64, ApplyWhere{}});
  return body;
}

}  // namespace einrel
