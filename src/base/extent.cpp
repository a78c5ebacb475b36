#include "base/extent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace einrel {

Extent::Extent(std::int64_t value) : value_(value) {
  if (value < 0) throw UserError(fmt::format("an extent cannot be negative: {}", value));
}

void Extent::refuse_open() { throw Bug("an open extent has no value"); }

std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) {
    throw UserError(fmt::format("{} * {} does not fit in 63 bits", a, b));
  }
  return result;
}

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) {
    throw UserError(fmt::format("{} + {} does not fit in 63 bits", a, b));
  }
  return result;
}

std::int64_t element_count(const Shape& shape) {
  if (std::find(shape.begin(), shape.end(), Extent(0)) != shape.end()) return 0;
  std::int64_t count = 1;
  for (const Extent extent : shape) count = checked_multiply(count, extent.value());
  return count;
}

std::string to_string(const Shape& shape) {
  std::vector<std::int64_t> extents;
  for (const Extent extent : shape) extents.push_back(extent.value());
  return fmt::format("({}{})", fmt::join(extents, ", "), extents.size() == 1 ? "," : "");
}

Shape make_shape(const std::vector<std::int64_t>& extents) {
  Shape shape;
  for (const std::int64_t extent : extents) shape.emplace_back(extent);
  return shape;
}

}  // namespace einrel
