#include "tensor/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "base/error.h"
#include "base/text.h"
#include "tensor/convert.h"

namespace einrel {
std::shared_ptr<std::byte> allocate_elements(DType dtype, const Shape& shape, MemoryPool& pool) {
  const std::int64_t bytes = checked_multiply(element_count(shape), static_cast<std::int64_t>(size_of(dtype)));
  try {
    return pool.allocate(static_cast<std::size_t>(bytes));
  } catch (const std::bad_alloc&) {
    throw RunError(fmt::format("no memory for a tensor of shape {} and dtype {}: it needs {}", to_string(shape),
                               name_of(dtype), bytes_text(bytes)));
  }
}

Strides row_major_strides(const Shape& shape) {
  Strides strides(shape.size(), 1);
  if (element_count(shape) == 0) return strides;
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d].value();
  return strides;
}

bool is_row_major(const Shape& shape, const Strides& strides) {
  if (element_count(shape) == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != Extent(1) && strides[d] != expected) return false;
    expected *= shape[d].value();
  }
  return true;
}

Tensor::Tensor() : Tensor(DType::f32, {}) { std::fill_n(writable_, sizeof(float), std::byte{0}); }

Tensor::Tensor(DType dtype, Shape shape) : Tensor(dtype, std::move(shape), MemoryPool()) {}

Tensor::Tensor(DType dtype, Shape shape, MemoryPool pool)
    : dtype_(dtype), shape_(std::move(shape)), strides_(row_major_strides(shape_)), count_(element_count(shape_)) {
  auto memory = allocate_elements(dtype, shape_, pool);
  writable_ = memory.get();
  data_ = writable_;
  owner_ = std::move(memory);
}

Tensor::Tensor(DType dtype, Shape shape, Strides strides, const std::byte* data, std::shared_ptr<const void> owner)
    : dtype_(dtype),
      shape_(std::move(shape)),
      strides_(std::move(strides)),
      count_(element_count(shape_)),
      data_(data),
      owner_(std::move(owner)) {
  invariant(strides_.size() == shape_.size(), "a tensor has one stride per dimension");
}

std::int64_t Tensor::byte_count() const { return checked_multiply(count_, static_cast<std::int64_t>(size_of(dtype_))); }

std::byte* Tensor::mutable_data() {
  invariant(writable_ != nullptr, "a view of foreign bytes is read-only");
  return writable_;
}

Tensor Tensor::permuted(const std::vector<std::size_t>& order) const {
  Tensor result = *this;
  for (std::size_t d = 0; d < order.size(); ++d) {
    result.shape_[d] = shape_[order[d]];
    result.strides_[d] = strides_[order[d]];
  }
  result.writable_ = nullptr;
  return result;
}

Tensor Tensor::restrided(Shape shape, Strides strides) const {
  return Tensor(dtype_, std::move(shape), std::move(strides), data_, owner_);
}

std::int64_t offset_of(const std::vector<std::int64_t>& at, const Strides& strides) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
  return offset;
}

void copy_elements(DType dtype, const Shape& shape, const ConstElements& from, std::byte* to,
                   const Strides& to_strides) {
  if (element_count(shape) == 0) return;
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  // The last dimensions in which both sides step through memory without gaps are one row.
  std::size_t outer = shape.size();
  std::int64_t row = 1;
  while (outer > 0 && from.strides[outer - 1] == row && to_strides[outer - 1] == row) row *= shape[--outer].value();
  std::vector<std::int64_t> at(outer, 0);
  const std::byte* read = from.data;
  for (;;) {
    std::memcpy(to, read, static_cast<std::size_t>(row * size));
    std::size_t d = outer;
    for (; d > 0; --d) {
      read += from.strides[d - 1] * size;
      to += to_strides[d - 1] * size;
      if (++at[d - 1] < shape[d - 1].value()) break;
      read -= from.strides[d - 1] * shape[d - 1].value() * size;
      to -= to_strides[d - 1] * shape[d - 1].value() * size;
      at[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

Tensor Tensor::box(const std::vector<std::int64_t>& begin, Shape shape) const {
  const std::byte* const first = data_ + offset_of(begin, strides_) * static_cast<std::int64_t>(size_of(dtype_));
  return Tensor(dtype_, std::move(shape), strides_, first, owner_);
}

std::optional<Tensor> Tensor::reshaped(const Shape& shape) const {
  invariant(element_count(shape) == count_, "a reshape keeps the number of elements");
  if (!is_row_major()) return std::nullopt;
  return Tensor(dtype_, shape, row_major_strides(shape), data_, owner_);
}

Tensor Tensor::row_major() const {
  if (is_row_major()) return Tensor(dtype_, shape_, row_major_strides(shape_), data_, owner_);
  Tensor copy(dtype_, shape_);
  with_stored_type(dtype_, [&]<class Stored>() {
    std::byte* to = copy.mutable_data();
    for_each_offset(shape_, strides_, [&](std::int64_t offset) {
      const auto value = load<Stored>(offset);
      std::memcpy(to, &value, sizeof(Stored));
      to += sizeof(Stored);
    });
  });
  return copy;
}

Tensor tensor_of(DType dtype, const Shape& shape, const std::vector<double>& values) {
  Tensor tensor(dtype, shape);
  invariant(static_cast<std::int64_t>(values.size()) == tensor.count(), "one value per element");
  with_stored_type(dtype, [&]<class Stored>() {
    std::byte* to = tensor.mutable_data();
    for (const double value : values) {
      const auto stored = narrow<Stored>(value);
      std::memcpy(to, &stored, sizeof(Stored));
      to += sizeof(Stored);
    }
  });
  return tensor;
}

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(tensor.count()));
  with_stored_type(tensor.dtype(), [&]<class Stored>() {
    for_each_offset(tensor.shape(), tensor.strides(), [&](std::int64_t offset) {
      values.push_back(static_cast<double>(widen(tensor.load<Stored>(offset))));
    });
  });
  return values;
}

}  // namespace einrel
