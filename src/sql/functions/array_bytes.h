#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace einrel::sql {

/// One chunk as a database stores it: "ERA1", one byte of dtype, one of rank, two of 0; each extent as 8 bytes; the
/// elements in row-major order. All numbers little-endian. O(elements).
std::vector<std::byte> array_bytes(const Tensor& tensor);

/// The same written to memory that a database has: so many bytes.
std::size_t array_size(const Tensor& tensor);
void write_array(const Tensor& tensor, std::byte* to);

/// The array in these bytes, as a view of them: they must outlive it. Throws UserError for any others.
Tensor array_in(std::span<const std::byte> bytes);

/// What the bytes in front of an array's elements say.
struct ArrayHead {
  DType dtype = DType::f32;
  Shape shape;
};
/// How many those are.
constexpr std::size_t array_head_bytes(std::size_t rank) { return 8 + rank * sizeof(std::int64_t); }
/// The head of an array of `size` bytes, of which `begin` are the first: at least its head. Throws as array_in does.
ArrayHead head_in(std::span<const std::byte> begin, std::uint64_t size);

/// Throws UserError for an array that no database holds in one value: one of more than most_chunk_bytes
/// (tra/formats.h).
void check_chunk_bytes(DType dtype, const Shape& shape);

}  // namespace einrel::sql
