#pragma once

#include <string>

#include "tensor/inflate.h"
#include "tensor/stored_tensor.h"
#include "tensor/stream.h"

namespace einrel {

/// MNIST's idx format: 0, 0, element type, rank; extents and elements big-endian. Throws UserError, naming
/// the file, for an unknown element type or any byte too few or too many.
StoredTensor parse_idx(const FileBytes& file);

/// The same inside gzip: decompressed here, as room_to_inflate gives room. Also RunError when there is none.
StoredTensor parse_idx_gz(const FileBytes& file, const InflateFolder& folder = {});

/// Whether idx has an element type for it: bool (as u8), i32, f32 and f64.
bool idx_can_hold(DType dtype);

/// Whether every extent has at most 31 bits, which is what readers of idx take.
bool idx_can_hold(const Shape& shape);

/// A whole .idx file, or the same inside gzip. The dtype and the shape must be such that idx_can_hold them.
void write_idx(const Tensor& tensor, const ByteSink& sink);
void write_idx_gz(const Tensor& tensor, const ByteSink& sink);

}  // namespace einrel
