#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernel/products/product.h"

namespace einrel::contraction {

// Windows that overlap, as of a convolution, read the same elements at many rows and inner positions. An image is a
// copy of an operand, or of a piece of it, that holds each such element once, and the pad around it.
//
// Example: X[c, 2*y+p-1, 2*x+q-1] with rows y, x and inner c, p, q has the axes 2*y+p, c, and 2*x+q.

/// A direction of an image: all loops that walk along one dimension of the operand.
struct ImageAxis {
  std::int64_t unit = 0;             ///< what one step adds to the offset into the operand
  std::optional<std::size_t> guard;  ///< of the reading: a coordinate that must be checked
  std::int64_t guard_unit = 1;       ///< what one step adds to it; positive
};

/// How a loop walks through an image: `stride` steps of an axis at every position.
struct ImageWalk {
  std::size_t axis = 0;
  std::int64_t stride = 0;  ///< 0 where the loop stays
};

struct ImageAxes {
  std::vector<ImageAxis> axes;   ///< outermost first; the last one is walked in the smallest steps
  std::vector<ImageWalk> rows;   ///< per loop
  std::vector<ImageWalk> inner;  ///< per loop
};

/// The axes of an operand that is read along these loops; nullopt where a loop walks along several at once.
std::optional<ImageAxes> find_axes(const Side& side, const std::vector<Loop>& rows, const std::vector<Loop>& inner);

/// The extents of an image and where its elements are.
struct ImageShape {
  std::vector<std::int64_t> extents;  ///< per axis
  std::vector<std::int64_t> steps;    ///< per axis, in the image
  std::int64_t size = 0;              ///< in elements, with gaps behind the last axis
};

/// The elements of the image of so many positions of every row loop, and of all inner ones: about, where they are many.
double image_size(const ImageAxes& axes, const std::vector<std::int64_t>& row_counts, const std::vector<Loop>& inner);

/// The same image, which must be of less than 2^31 elements.
ImageShape shape_of(const ImageAxes& axes, const std::vector<std::int64_t>& row_counts, const std::vector<Loop>& inner);

/// What one position of a loop adds to the offset into an image.
std::int64_t step_in(const ImageShape& shape, const ImageWalk& walk);

/// Copies pieces of an operand. T is float or double; the operand is stored as T, or for float as bf16 or f16.
template <class T>
class ImageCopy {
 public:
  ImageCopy(const Side& side, const ImageAxes& axes, const ImageShape& shape);

  /// The piece that begins where `quantities` say, of so many positions of every row loop. Returns the offset of its
  /// first row and inner position in the image.
  std::int64_t copy(const std::byte* operand, std::vector<std::int64_t> quantities, const std::vector<Loop>& rows,
                    const std::vector<std::int64_t>& row_counts, const std::vector<Loop>& inner, T* to);

 private:
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  Range inside(std::size_t axis, const std::vector<std::int64_t>& quantities) const;
  template <class Stored>
  void copy_plane(const Stored* from, Range lines, Range steps, T* to) const;
  template <class Stored>
  void copy_inside(const Stored* operand, const std::vector<std::int64_t>& quantities, T* to);

  const Side& side_;
  const ImageAxes& axes_;
  const ImageShape& shape_;
  std::vector<std::int64_t> extents_;       ///< of the piece
  std::vector<std::int64_t> line_offsets_;  ///< in the operand, of the steps along the last axis but one
  std::vector<std::int32_t> line_numbers_;  ///< 0, 1, ...
};

}  // namespace einrel::contraction
