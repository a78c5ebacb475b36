#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tensor/tensor.h"

namespace einrel::test {

/// Every element, in row-major order, exactly (i64) or widened.
inline std::vector<std::int64_t> integers_of(const Tensor& tensor) {
  std::vector<std::int64_t> values;
  with_stored_type(tensor.dtype(), [&]<class Stored>() {
    for_each_offset(tensor.shape(), tensor.strides(), [&](std::int64_t offset) {
      values.push_back(static_cast<std::int64_t>(widen(tensor.load<Stored>(offset))));
    });
  });
  return values;
}

/// Equal, or both NaN.
inline bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// |got - want| <= allowed[i] for every element; NaN and infinities exactly, unless an infinite error is allowed;
/// integers exactly whatever is allowed.
inline testing::AssertionResult agree(const Tensor& got, const Tensor& want, const std::vector<double>& allowed) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape()) {
    return testing::AssertionFailure() << "got " << name_of(got.dtype()) << to_string(got.shape()) << ", want "
                                       << name_of(want.dtype()) << to_string(want.shape());
  }
  if (!is_float(want.dtype())) {
    const auto got_values = integers_of(got);
    const auto want_values = integers_of(want);
    for (std::size_t i = 0; i < want_values.size(); ++i) {
      if (got_values[i] == want_values[i]) continue;
      return testing::AssertionFailure() << "element " << i << ": got " << got_values[i] << ", want " << want_values[i];
    }
    return testing::AssertionSuccess();
  }
  const auto got_values = values_of(got);
  const auto want_values = values_of(want);
  for (std::size_t i = 0; i < want_values.size(); ++i) {
    if (same(got_values[i], want_values[i]) || std::isinf(allowed[i])) continue;
    if (std::abs(got_values[i] - want_values[i]) <= allowed[i]) continue;
    return testing::AssertionFailure() << "element " << i << ": got " << got_values[i] << ", want " << want_values[i]
                                       << ", allowed " << allowed[i];
  }
  return testing::AssertionSuccess();
}

/// The distance of 1 to the next number of a float type.
inline double epsilon(DType dtype) {
  switch (dtype) {
    case DType::f32: return 0x1p-23;
    case DType::f64: return 0x1p-52;
    case DType::bf16: return 0x1p-7;
    case DType::f16: return 0x1p-10;
    default: return 0;
  }
}

}  // namespace einrel::test
