#include "kernel/products/window_image.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>
#include <type_traits>

#include "kernel/products/pack.h"
#include "kernel/products/pack_ops.h"
#include "tensor/convert.h"

namespace einrel::contraction {
namespace {

constexpr std::int64_t elements_of_line = nominal_processor.line_bytes / 4;  // in f32

/// A loop on its way to an axis.
struct Walker {
  const Loop* loop = nullptr;
  bool row = false;
  std::optional<ImageWalk> walk;
};

/// The loops that a guarded coordinate grows with. False where one has an axis already, or where the offset does not
/// grow with the coordinate alone.
bool add_guarded_axis(const Reading& reading, std::size_t guard, std::vector<Walker>& walkers,
                      std::vector<ImageAxis>& axes) {
  const std::size_t quantity = reading.guards[guard].quantity;
  std::int64_t unit = 0;
  for (const Walker& walker : walkers) unit = std::gcd(unit, walker.loop->steps[quantity]);
  ImageAxis axis{0, guard, std::max<std::int64_t>(unit, 1)};
  bool first = true;
  for (Walker& walker : walkers) {
    const std::int64_t step = walker.loop->steps[quantity];
    if (step == 0) continue;
    if (walker.walk) return false;
    walker.walk = ImageWalk{axes.size(), step / unit};
    const std::int64_t offset = walker.loop->steps[reading.quantity];
    if (first) axis.unit = offset / walker.walk->stride;
    if (multiply_wrapping(axis.unit, walker.walk->stride) != offset) return false;
    first = false;
  }
  axes.push_back(axis);
  return true;
}

/// Loops whose positions overlap in the operand share an axis.
void add_other_axes(std::size_t quantity, std::vector<Walker>& walkers, std::vector<ImageAxis>& axes) {
  const auto distance = [&](const Walker& walker) { return std::abs(walker.loop->steps[quantity]); };
  std::vector<Walker*> left;
  for (Walker& walker : walkers) {
    if (!walker.walk && distance(walker) != 0) left.push_back(&walker);
  }
  std::sort(left.begin(), left.end(), [&](const Walker* x, const Walker* y) { return distance(*x) < distance(*y); });
  for (std::size_t i = 0; i < left.size();) {
    double span = 0;
    std::int64_t unit = 0;
    const std::size_t begin = i;
    for (; i < left.size() && (i == begin || static_cast<double>(distance(*left[i])) <= span); ++i) {
      span += static_cast<double>(distance(*left[i])) * static_cast<double>(left[i]->loop->extent - 1);
      unit = std::gcd(unit, distance(*left[i]));
    }
    for (std::size_t l = begin; l < i; ++l) {
      left[l]->walk = ImageWalk{axes.size(), left[l]->loop->steps[quantity] / unit};
    }
    axes.push_back({unit, std::nullopt, 1});
  }
}

/// Axes of rows outside, those of inner loops inside them, the one of the smallest steps last: what a tile reads lies
/// close together, and lines of the operand are copied whole.
void order_axes(std::vector<ImageAxis>& axes, std::vector<Walker>& walkers) {
  std::vector<bool> of_rows(axes.size(), false);
  for (const Walker& walker : walkers) {
    if (walker.walk && walker.row) of_rows[walker.walk->axis] = true;
  }
  const auto distance = [&](std::size_t axis) {
    return axes[axis].unit == 0 ? std::numeric_limits<std::int64_t>::max() : std::abs(axes[axis].unit);
  };
  std::vector<std::size_t> order(axes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t last = *std::min_element(order.begin(), order.end(),
                                             [&](std::size_t x, std::size_t y) { return distance(x) < distance(y); });
  const auto rank = [&](std::size_t axis) { return std::tuple(axis == last, !of_rows[axis], -distance(axis)); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return rank(x) < rank(y); });
  std::vector<ImageAxis> sorted;
  std::vector<std::size_t> place(axes.size());
  for (const std::size_t axis : order) {
    place[axis] = sorted.size();
    sorted.push_back(axes[axis]);
  }
  axes = std::move(sorted);
  for (Walker& walker : walkers) {
    if (walker.walk) walker.walk->axis = place[walker.walk->axis];
  }
}

std::vector<double> extents_of(const ImageAxes& axes, const std::vector<std::int64_t>& row_counts,
                               const std::vector<Loop>& inner) {
  std::vector<double> extents(axes.axes.size(), 1);
  const auto extend = [&](const ImageWalk& walk, std::int64_t count) {
    extents[walk.axis] += std::abs(static_cast<double>(walk.stride)) * static_cast<double>(count - 1);
  };
  for (std::size_t l = 0; l < row_counts.size(); ++l) extend(axes.rows[l], row_counts[l]);
  for (std::size_t l = 0; l < inner.size(); ++l) extend(axes.inner[l], inner[l].extent);
  return extents;
}

}  // namespace

std::optional<ImageAxes> find_axes(const Side& side, const std::vector<Loop>& rows, const std::vector<Loop>& inner) {
  std::vector<Walker> walkers;
  for (const Loop& loop : rows) walkers.push_back({&loop, true, std::nullopt});
  for (const Loop& loop : inner) walkers.push_back({&loop, false, std::nullopt});
  ImageAxes found;
  for (std::size_t guard = 0; guard < side.reading.guards.size(); ++guard) {
    if (!add_guarded_axis(side.reading, guard, walkers, found.axes)) return std::nullopt;
  }
  add_other_axes(side.reading.quantity, walkers, found.axes);
  while (found.axes.size() < 2) found.axes.emplace_back();  // copies are made of lines and planes
  order_axes(found.axes, walkers);
  for (const Walker& walker : walkers) {
    (walker.row ? found.rows : found.inner).push_back(walker.walk.value_or(ImageWalk{}));
  }
  return found;
}

double image_size(const ImageAxes& axes, const std::vector<std::int64_t>& row_counts, const std::vector<Loop>& inner) {
  std::vector<double> extents = extents_of(axes, row_counts, inner);
  // An odd number of cache lines, as below.
  extents.back() = (2 * std::ceil((extents.back() / elements_of_line - 1) / 2) + 1) * elements_of_line;
  return std::accumulate(extents.begin(), extents.end(), 1.0, std::multiplies<>());
}

ImageShape shape_of(const ImageAxes& axes, const std::vector<std::int64_t>& row_counts,
                    const std::vector<Loop>& inner) {
  ImageShape shape;
  for (const double extent : extents_of(axes, row_counts, inner)) {
    shape.extents.push_back(static_cast<std::int64_t>(extent));
  }
  shape.steps.assign(shape.extents.size(), 1);
  // Lines begin at cache lines, an odd number of them apart, so that they spread over all sets of the cache.
  shape.size = (ceil_div(shape.extents.back(), elements_of_line) | 1) * elements_of_line;
  for (std::size_t axis = shape.extents.size() - 1; axis-- > 0;) {
    shape.steps[axis] = shape.size;
    shape.size *= shape.extents[axis];
  }
  return shape;
}

std::int64_t step_in(const ImageShape& shape, const ImageWalk& walk) { return walk.stride * shape.steps[walk.axis]; }

template <class T>
ImageCopy<T>::ImageCopy(const Side& side, const ImageAxes& axes, const ImageShape& shape)
    : side_(side), axes_(axes), shape_(shape) {}

/// The steps along an axis at which its coordinate lies inside of the operand.
template <class T>
typename ImageCopy<T>::Range ImageCopy<T>::inside(std::size_t axis, const std::vector<std::int64_t>& quantities) const {
  const ImageAxis& along = axes_.axes[axis];
  if (!along.guard) return {0, extents_[axis]};
  const Guard& guard = side_.reading.guards[*along.guard];
  const std::int64_t first = quantities[guard.quantity];
  const std::int64_t begin = first < 0 ? ceil_div(-first, along.guard_unit) : 0;
  const std::int64_t end = first < guard.extent ? (guard.extent - 1 - first) / along.guard_unit + 1 : 0;
  return {std::min(begin, extents_[axis]), std::min(end, extents_[axis])};
}

/// Lines along the last axis, one for each step along the one before.
template <class T>
template <class Stored>
void ImageCopy<T>::copy_plane(const Stored* from, Range lines, Range steps, T* to) const {
  const std::size_t last = axes_.axes.size() - 1;
  const std::int64_t pitch = shape_.steps[last - 1];
  const std::int64_t unit = axes_.axes[last].unit;
  if (unit == 1) {
    LineCopy<T, Stored> copy;
    copy.source = from + steps.begin;
    copy.offsets = line_offsets_.data();
    copy.positions = line_numbers_.data() + lines.begin;
    copy.count = lines.end - lines.begin;
    copy.lanes = steps.end - steps.begin;
    copy.to = to + steps.begin;
    copy.width = pitch;
    return copy_lines(copy);
  }
  for (std::int64_t line = lines.begin; line < lines.end; ++line) {
    const Stored* const element = from + line_offsets_[static_cast<std::size_t>(line)];
    for (std::int64_t step = steps.begin; step < steps.end; ++step) {
      if constexpr (std::is_same_v<T, Stored>) {
        to[line * pitch + step] = element[step * unit];
      } else {
        to[line * pitch + step] = to_float(element[step * unit]);
      }
    }
  }
}

/// All that is inside of the operand; `quantities` are those of the first step along every axis.
template <class T>
template <class Stored>
void ImageCopy<T>::copy_inside(const Stored* operand, const std::vector<std::int64_t>& quantities, T* to) {
  const std::size_t outer = axes_.axes.size() - 2;
  std::vector<Range> ranges;
  std::int64_t planes = 1;
  for (std::size_t axis = 0; axis < axes_.axes.size(); ++axis) {
    ranges.push_back(inside(axis, quantities));
    if (ranges.back().begin >= ranges.back().end) return;
    if (axis < outer) planes *= ranges[axis].end - ranges[axis].begin;
  }
  const auto lines = static_cast<std::size_t>(extents_[outer]);
  line_offsets_.resize(lines);
  line_numbers_.resize(lines);
  std::iota(line_numbers_.begin(), line_numbers_.end(), 0);
  for (std::size_t l = 0; l < lines; ++l) {
    line_offsets_[l] = multiply_wrapping(static_cast<std::int64_t>(l), axes_.axes[outer].unit);
  }
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    std::int64_t from = quantities[side_.reading.quantity];
    std::int64_t place = 0;
    std::int64_t rest = plane;
    for (std::size_t axis = outer; axis-- > 0;) {
      const std::int64_t count = ranges[axis].end - ranges[axis].begin;
      const std::int64_t step = ranges[axis].begin + rest % count;
      from = add_wrapping(from, multiply_wrapping(step, axes_.axes[axis].unit));
      place += step * shape_.steps[axis];
      rest /= count;
    }
    copy_plane(operand + from, ranges[outer], ranges[outer + 1], to + place);
  }
}

template <class T>
std::int64_t ImageCopy<T>::copy(const std::byte* operand, std::vector<std::int64_t> quantities,
                                const std::vector<Loop>& rows, const std::vector<std::int64_t>& row_counts,
                                const std::vector<Loop>& inner, T* to) {
  extents_.assign(axes_.axes.size(), 1);
  std::int64_t first = 0;
  // Loops that walk backwards begin at the far end.
  const auto extend = [&](const Loop& loop, const ImageWalk& walk, std::int64_t count) {
    extents_[walk.axis] += std::abs(walk.stride) * (count - 1);
    if (walk.stride >= 0) return;
    first -= step_in(shape_, walk) * (count - 1);
    for (std::size_t q = 0; q < quantities.size(); ++q) {
      quantities[q] = add_wrapping(quantities[q], multiply_wrapping(loop.steps[q], count - 1));
    }
  };
  for (std::size_t l = 0; l < rows.size(); ++l) extend(rows[l], axes_.rows[l], row_counts[l]);
  for (std::size_t l = 0; l < inner.size(); ++l) extend(inner[l], axes_.inner[l], inner[l].extent);
  if (!side_.reading.guards.empty()) std::fill_n(to, shape_.size, pad_value<T>(side_.reading));
  with_stored_type(side_.reading.dtype, [&]<class Stored>() {
    if constexpr (is_fast_pair<T, Stored>) copy_inside(reinterpret_cast<const Stored*>(operand), quantities, to);
  });
  if (side_.factor != 1) {
    for (std::int64_t i = 0; i < shape_.size; ++i) to[i] *= static_cast<T>(side_.factor);
  }
  return first;
}

template class ImageCopy<float>;
template class ImageCopy<double>;

}  // namespace einrel::contraction
