#include <einrel/error.h>
#include <einrel/tensor.h>
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "api/border.h"
#include "api/tensor_data.h"
#include "base/cut_files.h"
#include "einsum/expr/complex_function.h"
#include "tensor/tensor_file.h"

namespace einrel::api {
namespace {

// DType is einrel::DType, row by row.
static_assert(static_cast<int>(DType::f32) == static_cast<int>(einrel::DType::f32));
static_assert(static_cast<int>(DType::f64) == static_cast<int>(einrel::DType::f64));
static_assert(static_cast<int>(DType::bf16) == static_cast<int>(einrel::DType::bf16));
static_assert(static_cast<int>(DType::f16) == static_cast<int>(einrel::DType::f16));
static_assert(static_cast<int>(DType::i32) == static_cast<int>(einrel::DType::i32));
static_assert(static_cast<int>(DType::i64) == static_cast<int>(einrel::DType::i64));
static_assert(static_cast<int>(DType::boolean) == static_cast<int>(einrel::DType::boolean));
static_assert(einrel::all_dtypes.size() == static_cast<std::size_t>(DType::boolean) + 1);
static_assert(sizeof(bool) == 1);

/// Throws UserError unless `shape` is one and has `count` elements.
einrel::Shape checked_shape(DType dtype, const Shape& shape, std::size_t count) {
  for (const std::int64_t extent : shape) {
    if (extent < 0) throw UserError(fmt::format("a tensor of shape {}: an extent is 0 or more", shape_text(shape)));
  }
  const std::int64_t wanted = element_count(make_shape(shape));
  checked_multiply(wanted, static_cast<std::int64_t>(size_of(dtype)));
  if (static_cast<std::size_t>(wanted) != count) {
    throw UserError(fmt::format("a tensor of shape {} has {} {}, but {} {} given", shape_text(shape), wanted,
                                wanted == 1 ? "element" : "elements", count, count == 1 ? "is" : "are"));
  }
  return inside(dtype, shape);
}

/// Whether bytes are 0 or 1, as those of bools are; a file may have others.
bool are_bools(std::span<const std::byte> bytes) {
  constexpr std::uint64_t others = 0xFEFE'FEFE'FEFE'FEFE;  // bits of eight bytes that none of them has
  std::array<std::uint64_t, 4> words{};
  std::array<std::uint64_t, 4> all{};
  for (; bytes.size() >= sizeof words; bytes = bytes.subspan(sizeof words)) {
    std::memcpy(words.data(), bytes.data(), sizeof words);
    for (std::size_t w = 0; w < words.size(); ++w) all[w] |= words[w];
  }
  for (const std::byte one : bytes) all[0] |= std::to_integer<std::uint64_t>(one);
  return ((all[0] | all[1] | all[2] | all[3]) & others) == 0;
}

/// Whether the elements lie as those of the interface do.
bool is_plain(const einrel::Tensor& tensor) {
  if (!tensor.is_row_major() || reinterpret_cast<std::uintptr_t>(tensor.data()) % size_of(tensor.dtype()) != 0)
    return false;
  return tensor.dtype() != einrel::DType::boolean ||
         are_bools({tensor.data(), static_cast<std::size_t>(tensor.count())});
}

einrel::Tensor plain_copy(const einrel::Tensor& tensor) {
  einrel::Tensor copy(tensor.dtype(), tensor.shape());
  copy_elements(tensor.dtype(), tensor.shape(), {tensor.data(), tensor.strides()}, copy.mutable_data(), copy.strides());
  if (tensor.dtype() == einrel::DType::boolean) {
    const std::span bytes(copy.mutable_data(), static_cast<std::size_t>(copy.count()));
    for (std::byte& one : bytes) one = std::byte{one != std::byte{0}};
  }
  return copy;
}

}  // namespace

Tensor TensorAccess::outside(einrel::Tensor tensor, bool is_complex) {
  Shape shape;
  shape.reserve(tensor.shape().size());
  for (const Extent extent : tensor.shape()) shape.push_back(extent.value());
  if (is_complex) shape.pop_back();
  if (!is_plain(tensor)) tensor = plain_copy(tensor);
  return Tensor(std::make_shared<const Tensor::Data>(Tensor::Data{std::move(tensor), std::move(shape), is_complex}));
}

einrel::DType inside(DType dtype) {
  if (dtype == DType::c64) return einrel::DType::f32;
  return dtype == DType::c128 ? einrel::DType::f64 : static_cast<einrel::DType>(dtype);
}
DType outside(einrel::DType dtype, bool is_complex) {
  if (!is_complex) return static_cast<DType>(dtype);
  return dtype == einrel::DType::f32 ? DType::c64 : DType::c128;
}
einrel::Shape inside(DType dtype, const Shape& shape) {
  einrel::Shape bound = make_shape(shape);
  if (is_complex(dtype)) bound.emplace_back(2);
  return bound;
}

std::string shape_text(const Shape& shape) {
  std::string text = "(";
  for (std::size_t d = 0; d < shape.size(); ++d) text += fmt::format("{}{}", d == 0 ? "" : ", ", shape[d]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::string_view name_of(DType dtype) {
  return is_complex(dtype) ? name_of_complex(inside(dtype)) : einrel::name_of(inside(dtype));
}
std::size_t size_of(DType dtype) { return einrel::size_of(inside(dtype)) * (is_complex(dtype) ? 2 : 1); }

float to_float(Float16 value) { return einrel::to_float(einrel::Float16{value.bits}); }
float to_float(BFloat16 value) { return einrel::to_float(einrel::BFloat16{value.bits}); }
Float16 to_float16(float value) { return {einrel::to_float16(value).bits}; }
BFloat16 to_bfloat16(float value) { return {einrel::to_bfloat16(value).bits}; }

Tensor::Tensor() : Tensor(Shape{}, std::vector<float>{0}) {}
Tensor::Tensor(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

Tensor Tensor::copy_bytes(DType dtype, Shape shape, std::span<const std::byte> bytes) {
  return at_border([&] {
    einrel::Tensor tensor(inside(dtype), checked_shape(dtype, shape, bytes.size() / size_of(dtype)));
    if (!bytes.empty()) std::memcpy(tensor.mutable_data(), bytes.data(), bytes.size());
    return Tensor(std::make_shared<const Data>(Data{std::move(tensor), std::move(shape), is_complex(dtype)}));
  });
}

Tensor Tensor::borrow_bytes(DType dtype, Shape shape, std::span<const std::byte> bytes,
                            std::shared_ptr<const void> owner) {
  return at_border([&] {
    einrel::Shape bound = checked_shape(dtype, shape, bytes.size() / size_of(dtype));
    Strides strides = row_major_strides(bound);
    einrel::Tensor tensor(inside(dtype), std::move(bound), std::move(strides), bytes.data(), std::move(owner));
    return Tensor(std::make_shared<const Data>(Data{std::move(tensor), std::move(shape), is_complex(dtype)}));
  });
}

Tensor Tensor::load(std::string_view file) {
  return at_border([&] {
    const CutWatch watch;
    const StoredTensor stored = open_tensor(parse_file_ref(file));
    Tensor tensor = TensorAccess::outside(read(stored), stored.is_complex);
    watch.check();
    return tensor;
  });
}

void Tensor::save(std::string_view file) const {
  at_border([&] {
    FileRef to = parse_file_ref(file);
    to.is_complex = data_->is_complex;
    check_writable({{to, inside(dtype())}});
    write_tensors({{to, data_->tensor}});
  });
}

DType Tensor::dtype() const { return outside(data_->tensor.dtype(), data_->is_complex); }
const Shape& Tensor::shape() const { return data_->shape; }
std::size_t Tensor::rank() const { return data_->shape.size(); }
std::int64_t Tensor::count() const { return data_->tensor.count() / (data_->is_complex ? 2 : 1); }

std::span<const std::byte> Tensor::bytes() const& {
  return {data_->tensor.data(), static_cast<std::size_t>(data_->tensor.byte_count())};
}

void Tensor::require(DType dtype) const {
  if (dtype == this->dtype()) return;
  throw UserError(
      fmt::format("the elements of a tensor of type {} are asked for as {}", name_of(this->dtype()), name_of(dtype)));
}

std::size_t Tensor::offset_of(std::span<const std::int64_t> at) const {
  const Shape& shape = data_->shape;
  bool is_inside = at.size() == shape.size();
  std::size_t offset = 0;
  for (std::size_t d = 0; is_inside && d < shape.size(); ++d) {
    is_inside = at[d] >= 0 && at[d] < shape[d];
    offset = offset * static_cast<std::size_t>(shape[d]) + static_cast<std::size_t>(at[d]);
  }
  if (!is_inside) {
    throw UserError(
        fmt::format("a tensor of shape {} has no element {}", shape_text(shape), shape_text({at.begin(), at.end()})));
  }
  return offset;
}

}  // namespace einrel::api
