#pragma once

#include <vector>

#include "einsum/graph/ein_graph.h"
#include "tensor/tensor.h"

namespace einrel {

/// An array as a kernel finds it: everything but where it lies.
struct ArrayLayout {
  DType dtype = DType::f32;
  Shape shape;
  Strides strides;      ///< in elements; of operands any, of a result such that no two elements share memory
  bool aligned = true;  ///< its first element lies at a multiple of its size
  bool operator==(const ArrayLayout&) const = default;
};

ArrayLayout layout_of(const Tensor& tensor);
/// Whether layout_of(tensor) is this one.
bool has_layout(const Tensor& tensor, const ArrayLayout& layout);
ArrayLayout row_major_layout(DType dtype, const Shape& shape);

/// What runs on one chunk: an EinSum on arrays of known shapes and strides.
struct KernelSpec {
  EinSum einsum;
  std::vector<ArrayLayout> operands;  ///< as einsum.operands
  ArrayLayout result;
  ScalarBindings scalars;
  /// Z = Z (+) the reduction, instead of Z = the reduction: partial sums of one chunk come one after another. Only for
  /// reducers that go on from a value (sum, prod, max, min, any, all) and a result of their own type.
  bool accumulate = false;
  /// The result belongs to a tensor that stays in no cache (streaming.h).
  bool large_result = false;
  /// An operand is a part of a tensor that stays in no second-level cache.
  bool large_operands = false;
};

}  // namespace einrel
