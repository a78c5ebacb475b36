#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/extent.h"
#include "tensor/dtype.h"
#include "tensor/memory_pool.h"

namespace einrel {

/// Distance between neighbours along each dimension, in elements. May be 0 or negative.
using Strides = std::vector<std::int64_t>;

/// Row-major ("C") strides of a shape: the last dimension has stride 1.
Strides row_major_strides(const Shape& shape);

/// Whether strides are as good as these: those of single elements, and of none, do not matter.
bool is_row_major(const Shape& shape, const Strides& strides);

/// Memory for the elements of a tensor, contents unspecified. Throws RunError when it cannot be had.
std::shared_ptr<std::byte> allocate_elements(DType dtype, const Shape& shape, MemoryPool& pool);

/// Of the element with these coordinates, in elements.
std::int64_t offset_of(const std::vector<std::int64_t>& at, const Strides& strides);

/// Elements to read: the first one and how the others lie.
struct ConstElements {
  const std::byte* data = nullptr;
  const Strides& strides;
};
/// Copies the elements of a box, in rows where both sides have them.
void copy_elements(DType dtype, const Shape& shape, const ConstElements& from, std::byte* to,
                   const Strides& to_strides);

/// A strided view of elements in memory, kept alive by shared ownership. Copies are cheap and share the
/// elements; the bytes may live in this process' memory or in a mapped file. Elements are in native byte
/// order but need not be aligned (a mapped file puts them anywhere): read them with `load`.
class Tensor {
 public:
  /// A scalar f32 zero.
  Tensor();
  /// New memory in row-major order, contents unspecified. Throws RunError when it cannot be had.
  Tensor(DType dtype, Shape shape);
  /// The same, in memory that goes back to the pool.
  Tensor(DType dtype, Shape shape, MemoryPool pool);
  /// A view of bytes that `owner` keeps alive; `data` is the element with all coordinates 0. The caller
  /// has checked that every element lies inside those bytes.
  Tensor(DType dtype, Shape shape, Strides strides, const std::byte* data, std::shared_ptr<const void> owner);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::size_t rank() const { return shape_.size(); }
  const Strides& strides() const { return strides_; }
  std::int64_t count() const { return count_; }
  /// Bytes of all elements (count * element size).
  std::int64_t byte_count() const;
  const std::byte* data() const { return data_; }
  /// For filling a tensor made by Tensor(dtype, shape); throws Bug for a view of foreign bytes.
  std::byte* mutable_data();
  bool is_row_major() const { return einrel::is_row_major(shape_, strides_); }
  /// Whether it keeps its elements alive; else somebody else has to, for as long as it lives.
  bool has_owner() const { return owner_ != nullptr; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

  /// The element `offset` elements after the first.
  template <class Stored>
  Stored load(std::int64_t offset) const {
    Stored value;
    std::memcpy(&value, data_ + offset * static_cast<std::int64_t>(sizeof(Stored)), sizeof(Stored));
    return value;
  }

  /// The same elements with dimensions reordered: result dimension i is this tensor's order[i].
  Tensor permuted(const std::vector<std::size_t>& order) const;
  /// The same memory under another shape and strides. The caller has checked that every element lies inside it.
  Tensor restrided(Shape shape, Strides strides) const;
  /// The elements from `begin` on, as many along each dimension as `shape` says; they lie inside.
  Tensor box(const std::vector<std::int64_t>& begin, Shape shape) const;
  /// The same elements under another shape with equal count, without a copy; nullopt when the strides
  /// do not allow it.
  std::optional<Tensor> reshaped(const Shape& shape) const;
  /// A row-major tensor with the same elements: this one if it is row-major already, else a copy.
  Tensor row_major() const;

 private:
  DType dtype_ = DType::f32;
  Shape shape_;
  Strides strides_;
  std::int64_t count_ = 1;
  const std::byte* data_ = nullptr;
  std::byte* writable_ = nullptr;
  std::shared_ptr<const void> owner_;
};

/// Visits every element in row-major order of `shape` as its offset (in elements) under `strides`.
template <class Visit>
void for_each_offset(const Shape& shape, const Strides& strides, Visit&& visit) {
  const std::int64_t count = element_count(shape);
  std::vector<std::int64_t> at(shape.size(), 0);
  std::int64_t offset = 0;
  for (std::int64_t visited = 0; visited < count; ++visited) {
    visit(offset);
    for (std::size_t d = shape.size(); d-- > 0;) {
      offset += strides[d];
      if (++at[d] < shape[d].value()) break;
      offset -= strides[d] * shape[d].value();
      at[d] = 0;
    }
  }
}

/// A tensor from values in row-major order, rounded or truncated to `dtype`; for small literals.
Tensor tensor_of(DType dtype, const Shape& shape, const std::vector<double>& values);
/// Every element in row-major order, widened to double (i64 beyond 2^53 loses low bits).
std::vector<double> values_of(const Tensor& tensor);

}  // namespace einrel
