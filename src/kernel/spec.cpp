#include "kernel/spec.h"

namespace einrel {

ArrayLayout layout_of(const Tensor& tensor) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(tensor.data()) % size_of(tensor.dtype()) == 0;
  return {tensor.dtype(), tensor.shape(), tensor.strides(), aligned};
}

ArrayLayout row_major_layout(DType dtype, const Shape& shape) { return {dtype, shape, row_major_strides(shape), true}; }

}  // namespace einrel
