#include "tra/partial_reduction.h"

#include <utility>

#include "base/error.h"
#include "einsum/typing.h"
#include "tra/named_kernels.h"

namespace einrel {
namespace {

struct Fold {
  Reducer each{};
  std::string_view kernel;
};

Fold fold_of(Reducer reducer) {
  switch (reducer) {
    case Reducer::sum:
    case Reducer::mean: return {Reducer::sum, "add"};
    case Reducer::prod: return {reducer, "mul"};
    case Reducer::max:
    case Reducer::any: return {reducer, "max"};
    case Reducer::min:
    case Reducer::all: return {reducer, "min"};
    case Reducer::logsumexp: return {reducer, "logAddExp"};
    case Reducer::argmax:
    case Reducer::argmin: break;
  }
  throw Bug("positions of extremes are not folded");
}

}  // namespace

PartialReduction partial_reduction(Reducer reducer, ScalarExpr body, std::size_t rank) {
  const DType dtype = reduced_type(reducer, body.type());
  if (reducer == Reducer::mean && body.type() != dtype) body.steps.push_back({dtype, Convert{}});
  const Fold fold = fold_of(reducer);
  return {fold.each, std::move(body), dtype, named_kernel(fold.kernel, {dtype, dtype}, {rank, rank})};
}

ScalarExpr finished_reduction(Reducer reducer, DType partial, double count) {
  ScalarExpr body{{{partial, OperandValue{0}}}};
  if (reducer == Reducer::mean) {
    body.steps.push_back({partial, Constant{count}});
    body.steps.push_back({partial, ApplyBinary{BinaryFunction::divide}});
  }
  return body;
}

}  // namespace einrel
