#include "einsum/scalar_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tensor/convert.h"

namespace einrel {
namespace {

/// "T[3,7]", of a position in row-major order.
std::string element_text(const CheckRange& op, std::int64_t position) {
  std::vector<std::int64_t> indices(op.shape.size());
  for (std::size_t d = indices.size(); d-- > 0;) {
    const std::int64_t extent = std::max<std::int64_t>(op.shape[d].value(), 1);
    indices[d] = position % extent;
    position /= extent;
  }
  return fmt::format("{}[{}]", op.tensor, fmt::join(indices, ","));
}

}  // namespace

std::int64_t checked_range(const CheckRange& op, std::int64_t value, std::int64_t position) {
  if (value >= 0 && value < op.extent) return value;
  throw RunError(fmt::format(
      "{0} is {1}, but indexes a dimension of {2} of extent {3}: positions are from 0 up to {4}\n  help: mend "
      "the data of {5}; or read 0 there, pad({2}[{5}[...],...], 0)",
      element_text(op, position), value, op.indexed, op.extent, op.extent - 1, op.tensor));
}

Number as_type(DType type, Number value) {
  return with_stored_type(type, [&]<class Stored>() -> Number {
    return widen(std::visit([](auto computed) { return narrow<Stored>(computed); }, value));
  });
}

bool is_true(Number value) {
  return std::visit([](auto computed) { return computed != 0; }, value);
}

}  // namespace einrel
