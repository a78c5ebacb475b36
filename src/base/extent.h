#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace einrel {

/// The length of one dimension: 0 or more, at most 2^63-1; or open, where arrays give it later. Arithmetic is checked,
/// never wraps.
class Extent {
 public:
  constexpr Extent() = default;
  /// Throws UserError when negative.
  explicit Extent(std::int64_t value);
  static constexpr Extent open() {
    Extent extent;
    extent.value_ = open_value;
    return extent;
  }

  constexpr bool is_open() const { return value_ == open_value; }
  /// Throws Bug when open.
  constexpr std::int64_t value() const {
    if (is_open()) refuse_open();
    return value_;
  }
  constexpr auto operator<=>(const Extent&) const = default;

 private:
  static constexpr std::int64_t open_value = -1;
  [[noreturn]] static void refuse_open();

  std::int64_t value_ = 0;
};

/// a*b and a+b; throw UserError when the result needs more than 63 bits.
std::int64_t checked_multiply(std::int64_t a, std::int64_t b);
std::int64_t checked_add(std::int64_t a, std::int64_t b);

/// The bound b of a tensor (paper: EinDecomp, section 3): the extent of every dimension.
using Shape = std::vector<Extent>;

/// The number of elements: the product of all extents, 1 for a scalar. Throws UserError on overflow;
/// a shape with an extent of 0 has 0 elements whatever the others are.
std::int64_t element_count(const Shape& shape);

/// As Python writes a tuple: "(2, 3)", "(4,)", "()".
std::string to_string(const Shape& shape);

/// Shape{Extent(a), Extent(b), ...}.
Shape make_shape(const std::vector<std::int64_t>& extents);

}  // namespace einrel
