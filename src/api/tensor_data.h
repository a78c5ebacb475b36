#pragma once

#include <einrel/tensor.h>

#include "tensor/tensor.h"

namespace einrel::api {

/// What a tensor of the interface is: always row-major, aligned, bools 0 or 1.
struct Tensor::Data {
  einrel::Tensor tensor;
  Shape shape;
};

/// From and to the tensors of the rooms below.
struct TensorAccess {
  static const einrel::Tensor& inside(const Tensor& tensor) { return tensor.data_->tensor; }
  /// Copies elements that do not lie as those of the interface do. Throws as einrel::Tensor does.
  static Tensor outside(const einrel::Tensor& tensor);
};

/// The same types on both sides.
einrel::DType inside(DType dtype);
DType outside(einrel::DType dtype);

/// As messages show one: "(2, 3)".
std::string shape_text(const Shape& shape);

}  // namespace einrel::api
