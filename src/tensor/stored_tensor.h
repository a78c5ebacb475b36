#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "tensor/tensor.h"

namespace einrel {

/// The element types found in files: every DType, and small integers that are widened when read.
enum class StoredType : std::uint8_t { f32, f64, bf16, f16, i32, i64, boolean, u8, i8, u16, i16, u32 };

/// The DType as one of them.
StoredType stored_type(DType dtype);
/// "f32", ..., "bool", "u8", ..., "u32".
std::string_view name_of(StoredType type);
/// Bytes per element.
std::size_t size_of(StoredType type);
/// The type itself where it is one of ours, else the smallest of our integers that holds every value:
/// i32 for u8, i8, u16 and i16, i64 for u32.
DType natural_dtype(StoredType type);
/// Whether `read` gives the tensor as `dtype`. An integer is read as every number type that holds all its values
/// exactly, so i32 as i64; bool, floats and i64 as themselves only (change them in the program, with a cast).
bool fits(StoredType type, DType dtype);

/// A tensor in a file, known by its header; the elements have not been touched. Every element lies inside
/// the bytes that `owner` keeps.
struct StoredTensor {
  std::string name;  ///< for messages: the file, or file:member
  StoredType type = StoredType::f32;
  std::endian order = std::endian::native;
  Shape shape;
  Strides strides;
  const std::byte* data = nullptr;
  std::shared_ptr<const void> owner;
  /// Complex numbers: the type is that of their parts, which are the last dimension, and `read` gives both as numbers.
  bool is_complex = false;
};

/// "f32", or "c64" of complex numbers.
std::string_view type_name(const StoredTensor& stored);

/// No file holds more dimensions than this (NumPy stops at 64, idx at 255).
inline constexpr std::size_t max_rank = 255;

enum class ElementOrder : std::uint8_t { row_major, column_major };

/// How many bytes a file needs for the elements. Throws UserError, naming the file, when they do not fit in
/// 63 bits or the shape has too many dimensions.
std::uint64_t stored_bytes(const std::string& file, StoredType type, const Shape& shape);

/// A tensor whose elements are all the bytes of `data`. Throws UserError, naming `data.name`, when the shape
/// asks for another number of bytes, or as stored_bytes does.
StoredTensor stored_tensor(const FileBytes& data, StoredType type, std::endian order, Shape shape, ElementOrder layout);
/// A tensor of complex numbers with parts of that type. `shape` is without the parts. Throws as stored_tensor.
StoredTensor stored_complex(const FileBytes& data, StoredType parts, std::endian order, Shape shape,
                            ElementOrder layout);

/// Whether `read` gives a view of the file's own bytes, which costs no memory.
bool is_read_in_place(const StoredTensor& stored, DType dtype);

/// The elements as `dtype`, by default the natural one: a view of the file where the type is ours and the
/// bytes are in native order, else a converted copy in row-major order. Throws UserError unless
/// fits(stored.type, dtype), RunError when there is no memory for the copy.
Tensor read(const StoredTensor& stored, DType dtype);
Tensor read(const StoredTensor& stored);

/// Writes the elements of the box that begins there and has that bound as `dtype`, in row-major order. Throws as `read`
/// does for the type.
void read_box(const StoredTensor& stored, DType dtype, const std::vector<std::int64_t>& begin, const Shape& bound,
              std::byte* to);

}  // namespace einrel
