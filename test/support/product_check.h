#pragma once

// clang-format off: before anything of Highway.
#include "kernel/targets.h"
// clang-format on

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "einsum/reference.h"
#include "hwy/targets.h"
#include "kernel/kernels.h"
#include "kernel/products/product.h"
#include "kernel/workers.h"
#include "support/kernel_check.h"
#include "support/only_target.h"
#include "support/random_einsum.h"

namespace einrel::test {

inline Access access_of(const std::vector<std::size_t>& labels) {
  Access access;
  for (const std::size_t label : labels) access.indices.push_back({0, {{1, label}}});
  return access;
}

/// What is computed of x and y, both of this type.
inline ScalarExpr body_of(DType type, contraction::Join join) {
  ScalarExpr body{{{type, OperandValue{0}}, {type, OperandValue{1}}}};
  const auto binary = [&](BinaryFunction function) { body.steps.push_back({type, ApplyBinary{function}}); };
  switch (join) {
    case contraction::Join::multiply: binary(BinaryFunction::multiply); break;
    case contraction::Join::add: binary(BinaryFunction::add); break;
    case contraction::Join::maximum: binary(BinaryFunction::maximum); break;
    case contraction::Join::minimum: binary(BinaryFunction::minimum); break;
    case contraction::Join::square_difference:
      binary(BinaryFunction::subtract);
      body.steps.push_back({type, ApplyUnary{UnaryFunction::sq}});
      break;
    case contraction::Join::absolute_difference:
      binary(BinaryFunction::subtract);
      body.steps.push_back({type, ApplyUnary{UnaryFunction::abs}});
      break;
  }
  return body;
}

/// Which labels the operands and the result have, as positions among the extents.
struct Layout {
  std::vector<std::int64_t> extents;
  std::vector<std::size_t> x;
  std::vector<std::size_t> y;
  std::vector<std::size_t> z;
};

/// Z = reducer over the labels that are not in z (where there are such) of body(X, Y), with operands of small random
/// numbers.
inline RandomEinsum joining(const Layout& layout, DType stored, contraction::Join join,
                            std::optional<Reducer> reducer) {
  RandomEinsum result;
  EinSum einsum;
  for (std::size_t label = 0; label < layout.extents.size(); ++label) {
    einsum.labels.push_back({std::string(1, static_cast<char>('a' + label)), Extent(layout.extents[label])});
    if (std::find(layout.z.begin(), layout.z.end(), label) == layout.z.end()) einsum.reduced.push_back(label);
  }
  einsum.output = layout.z;
  einsum.reducer = reducer;
  einsum.operands = {access_of(layout.x), access_of(layout.y)};
  einsum.body = body_of(stored == DType::bf16 || stored == DType::f16 ? DType::f32 : stored, join);
  result.scalars["s"] = 0;
  Random random(11);
  for (const Access& access : einsum.operands) {
    Shape shape;
    for (const Index& index : access.indices) shape.push_back(einsum.labels[index.terms[0].label].extent);
    std::vector<double> values;
    for (std::int64_t i = 0; i < element_count(shape); ++i) values.push_back(random_number(random, stored, false));
    result.operands.push_back(tensor_of(stored, shape, values));
  }
  result.vertex.dtype = stored;
  for (const std::size_t label : einsum.output) result.vertex.bound.push_back(einsum.labels[label].extent);
  result.vertex.op = std::move(einsum);
  return result;
}

inline RandomEinsum product(const Layout& layout, DType stored) {
  return joining(layout, stored, contraction::Join::multiply, Reducer::sum);
}

inline contraction::Product as_product(const RandomEinsum& random, const ArrayLayout& result) {
  const KernelSpec spec = kernel_spec(random, result, false);
  return std::get<contraction::Product>(contraction::as_product(spec, make_nest(spec)));
}

/// A product and what the reference says of it.
class ProductCheck {
 public:
  /// `random` must outlive this.
  explicit ProductCheck(const RandomEinsum& random)
      : random_(random),
        want_(evaluate_reference(random.vertex, random.operands, random.scalars)),
        allowed_(allowed_errors(random, want_, DType::f32)) {}

  /// Runs what `prepare` makes of the product and compares with the reference.
  template <class Prepare>
  testing::AssertionResult run(const Prepare& prepare) const {
    Random noise(5);
    ResultMemory result(noise, random_.vertex.dtype, random_.vertex.bound, true);
    const PreparedKernel prepared = prepare(as_product(random_, result.layout()));
    const std::vector<const std::byte*> operands = data_of(random_.operands);
    const std::vector<std::byte> before = result.snapshot();
    Arrays arrays{operands.data(), result.data()};
    testing::AssertionResult ran = run_guarded(prepared, arrays, noise);
    if (!ran) return ran << "\n" << describe(random_);
    if (result.changes_outside(before) != 0) {
      return testing::AssertionFailure() << "it wrote outside of its result\n" << describe(random_);
    }
    testing::AssertionResult same = agree(result.tensor(), want_, allowed_);
    return same ? same : same << "\n" << describe(random_);
  }

 private:
  const RandomEinsum& random_;
  Tensor want_;
  std::vector<double> allowed_;
};

template <class Prepare>
testing::AssertionResult agrees(const RandomEinsum& random, const Prepare& prepare) {
  return ProductCheck(random).run(prepare);
}

/// The reference takes longest: it is asked once.
template <class Prepare>
testing::AssertionResult agrees_on_every_instruction_set(const RandomEinsum& random, const Prepare& prepare) {
  const ProductCheck check(random);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const OnlyTarget only(target);
    testing::AssertionResult same = check.run(prepare);
    if (!same) return same << "\non " << hwy::TargetName(target);
  }
  return testing::AssertionSuccess();
}

}  // namespace einrel::test
