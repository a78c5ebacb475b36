/// @file
/// Tensors: what programs take and give.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace einrel::api {

/// The type of a tensor's elements. bf16 and f16 are stored so and computed in f32.
enum class DType : std::uint8_t {
  f32,      ///< float
  f64,      ///< double
  bf16,     ///< BFloat16, the upper half of an f32
  f16,      ///< Float16, IEEE binary16
  i32,      ///< std::int32_t
  i64,      ///< std::int64_t
  boolean,  ///< bool, called "bool" in the language
  c64,      ///< std::complex<float>
  c128      ///< std::complex<double>
};

/// The name of a type in the language: "f32", ..., "bool".
std::string_view name_of(DType dtype);
/// Bytes per element.
std::size_t size_of(DType dtype);

/// An IEEE binary16 number as it is stored.
struct Float16 {
  std::uint16_t bits = 0;  ///< sign, 5 bits of exponent, 10 of mantissa
};
/// A bfloat16 number as it is stored.
struct BFloat16 {
  std::uint16_t bits = 0;  ///< the upper half of an f32
};
/// The exact value.
float to_float(Float16 value);
/// The exact value.
float to_float(BFloat16 value);
/// Rounded to nearest, ties to even; NaN stays NaN.
Float16 to_float16(float value);
/// Rounded to nearest, ties to even; NaN stays NaN.
BFloat16 to_bfloat16(float value);

/// The C++ types of elements, one for each DType.
template <class T>
concept Element = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, BFloat16> ||
    std::same_as<T, Float16> || std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t> ||
    std::same_as<T, bool> || std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;

/// The DType whose elements are of type T.
template <Element T>
constexpr DType dtype_of() {
  if constexpr (std::same_as<T, float>) return DType::f32;
  if constexpr (std::same_as<T, double>) return DType::f64;
  if constexpr (std::same_as<T, BFloat16>) return DType::bf16;
  if constexpr (std::same_as<T, Float16>) return DType::f16;
  if constexpr (std::same_as<T, std::int32_t>) return DType::i32;
  if constexpr (std::same_as<T, std::int64_t>) return DType::i64;
  if constexpr (std::same_as<T, bool>) return DType::boolean;
  if constexpr (std::same_as<T, std::complex<float>>) return DType::c64;
  if constexpr (std::same_as<T, std::complex<double>>) return DType::c128;
}

/// Elements one after the other in memory: a std::vector, std::array, std::span, ... of an Element.
template <class Range>
concept Elements = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    Element<std::remove_cv_t<std::ranges::range_value_t<Range>>>;

/// The extent of every dimension, each 0 or more; {} is a scalar's.
using Shape = std::vector<std::int64_t>;

/// A tensor that does not change: element type, shape, and the elements in row-major ("C") order, one after the other.
/// Copies are cheap: they share the elements, which live as long as the last of them. Any number of threads may read a
/// tensor at a time.
class Tensor {
 public:
  /// A scalar: one f32, which is 0.
  Tensor();
  /// Shares the elements. A tensor that is moved from stays as it is: it has elements at all times.
  Tensor(const Tensor&) = default;
  /// Shares the elements.
  Tensor& operator=(const Tensor&) = default;

  /// A tensor of these elements, in row-major order; a vector that is moved in is not copied. Throws UserError unless
  /// there are as many of them as the shape says.
  template <Element T>
  requires(!std::same_as<T, bool>)  // std::vector<bool> has no elements in memory: copy an array or a span of bool
      Tensor(Shape shape, std::vector<T> values)
      : Tensor(held(std::move(shape), std::make_shared<const std::vector<T>>(std::move(values)))) {}

  /// A tensor with a copy of these elements. Throws UserError unless there are as many of them as the shape says,
  /// RunError when there is no memory.
  template <Elements Range>
  static Tensor copy(Shape shape, const Range& values) {
    const std::span elements(values);
    return copy_bytes(dtype_of<std::ranges::range_value_t<Range>>(), std::move(shape), std::as_bytes(elements));
  }

  /// A tensor of these elements where they are, without a copy. They have to stay there unchanged for as long as
  /// this tensor, a copy of it or a run that takes it lives: the caller sees to it, or gives an `owner` that keeps them
  /// alive and is released after the last use. What a run returns never refers to elements without an owner. Throws
  /// UserError unless there are as many elements as the shape says. Does not compile for a container that is about to
  /// go out of scope.
  template <Elements Range>
  requires std::ranges::borrowed_range<Range>
  static Tensor borrow(Shape shape, Range&& values, std::shared_ptr<const void> owner = nullptr) {
    const std::span elements(values);
    return borrow_bytes(dtype_of<std::remove_cv_t<std::ranges::range_value_t<Range>>>(), std::move(shape),
                        std::as_bytes(elements), std::move(owner));
  }

  /// The tensor in a file: "x.npy", "w.npz:NAME", "w.safetensors:NAME", "images.idx", "images.idx.gz". It is mapped,
  /// not read, where the file has the elements in row-major order and this machine's byte order, so that a file larger
  /// than memory can be an input; it must not be cut short while the tensor lives (mapped_files.h). Small integers (u8,
  /// i8, u16, i16, u32) become i32 or i64. Throws UserError when the file cannot be read or is damaged, RunError when
  /// there is no memory.
  static Tensor load(std::string_view file);

  /// Writes a file, as named above (.npy, .npz:NAME, .safetensors:NAME, .idx, .idx.gz). It is there complete or not at
  /// all; a file of that name is replaced. Throws UserError when it cannot have this tensor, RunError when it cannot be
  /// written.
  void save(std::string_view file) const;

  /// The type of the elements.
  DType dtype() const;
  /// The extent of every dimension.
  const Shape& shape() const;
  /// The number of dimensions; 0 for a scalar.
  std::size_t rank() const;
  /// The number of elements: the product of all extents, 1 for a scalar.
  std::int64_t count() const;

  /// All elements in row-major order, where they are: valid for as long as this tensor or a copy of it lives. Throws
  /// UserError unless T is the type of the elements.
  template <Element T>
  std::span<const T> values() const& {
    require(dtype_of<T>());
    return {reinterpret_cast<const T*>(bytes().data()), static_cast<std::size_t>(count())};
  }
  /// Would outlive its elements.
  template <Element T>
  std::span<const T> values() const&& = delete;

  /// One element; `at` has one index per dimension, {} for a scalar. Throws UserError unless T is the type of the
  /// elements and every index lies inside the shape.
  template <Element T>
  T at(std::initializer_list<std::int64_t> at) const {
    require(dtype_of<T>());
    return reinterpret_cast<const T*>(bytes().data())[offset_of({at.begin(), at.size()})];
  }

  /// The memory of all elements: count() * size_of(dtype()) bytes, aligned as their type wants.
  std::span<const std::byte> bytes() const&;
  /// Would outlive its elements.
  std::span<const std::byte> bytes() const&& = delete;

 private:
  friend struct TensorAccess;
  struct Data;
  explicit Tensor(std::shared_ptr<const Data> data);

  template <class T>
  static Tensor held(Shape shape, std::shared_ptr<const std::vector<T>> values) {
    const std::span elements(*values);
    return borrow_bytes(dtype_of<T>(), std::move(shape), std::as_bytes(elements), std::move(values));
  }
  static Tensor copy_bytes(DType dtype, Shape shape, std::span<const std::byte> bytes);
  static Tensor borrow_bytes(DType dtype, Shape shape, std::span<const std::byte> bytes,
                             std::shared_ptr<const void> owner);
  void require(DType dtype) const;
  std::size_t offset_of(std::span<const std::int64_t> at) const;

  std::shared_ptr<const Data> data_;
};

}  // namespace einrel::api
