#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tensor/file_layout.h"
#include "tensor/stored_tensor.h"
#include "tensor/stream.h"

namespace einrel {

/// What every .npy file begins with.
inline constexpr std::string_view npy_magic = "\x93NUMPY";
bool begins_as_npy(std::span<const std::byte> bytes);

/// NumPy's .npy (numpy.lib.format), versions 1 to 3, both orders of elements and of bytes. bfloat16 is
/// '<V2' (as the ml_dtypes package stores it), '|V2' or 'bfloat16'. Bytes after the elements are ignored, as
/// numpy.load does. Throws UserError, naming `file.name`, for a damaged header, an element type that is not ours (it is
/// named), or any byte too few.
StoredTensor parse_npy(const FileBytes& file);

/// How many bytes a .npy file takes, up to its last element, as the header that `front` gives says. Throws as parse_npy
/// and `front` do.
std::uint64_t npy_file_size(const std::string& name, const ByteSource& front);

/// Everything before the elements: version 1, C order, little-endian. The shape has at most max_rank dimensions. Of
/// complex numbers its last dimension is that of their parts.
std::string npy_header(DType dtype, const Shape& with_parts, bool is_complex = false);

/// Of a file with that header.
FileLayout npy_layout(DType dtype, const Shape& shape, bool is_complex = false);

/// A whole .npy file: npy_header and the elements; bf16 as '<V2'.
void write_npy(const Tensor& tensor, const ByteSink& sink, bool is_complex = false);

}  // namespace einrel
