#pragma once

#include <einrel/tensor.h>

#include "tensor/tensor.h"

namespace einrel::api {

/// What a tensor of the interface is: always row-major, aligned, bools 0 or 1.
struct Tensor::Data {
  einrel::Tensor tensor;  ///< of complex numbers with a last dimension for their parts
  Shape shape;
  bool is_complex = false;
};

/// From and to the tensors of the rooms below.
struct TensorAccess {
  static const einrel::Tensor& inside(const Tensor& tensor) { return tensor.data_->tensor; }
  /// Copies elements that do not lie as those of the interface do. Throws as einrel::Tensor does.
  static Tensor outside(einrel::Tensor tensor, bool is_complex = false);
};

constexpr bool is_complex(DType dtype) { return dtype == DType::c64 || dtype == DType::c128; }
/// The same types on both sides; of complex numbers that of their parts.
einrel::DType inside(DType dtype);
DType outside(einrel::DType dtype, bool is_complex = false);
/// With a last dimension for the parts of complex numbers.
einrel::Shape inside(DType dtype, const Shape& shape);

/// As messages show one: "(2, 3)".
std::string shape_text(const Shape& shape);

}  // namespace einrel::api
