#include "kernel/spec.h"

namespace einrel {

namespace {

bool is_aligned(const Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.data()) % size_of(tensor.dtype()) == 0;
}

}  // namespace

ArrayLayout layout_of(const Tensor& tensor) {
  return {tensor.dtype(), tensor.shape(), tensor.strides(), is_aligned(tensor)};
}

bool has_layout(const Tensor& tensor, const ArrayLayout& layout) {
  return tensor.dtype() == layout.dtype && is_aligned(tensor) == layout.aligned && tensor.shape() == layout.shape &&
         tensor.strides() == layout.strides;
}

ArrayLayout row_major_layout(DType dtype, const Shape& shape) { return {dtype, shape, row_major_strides(shape), true}; }

}  // namespace einrel
