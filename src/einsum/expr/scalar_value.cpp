#include "einsum/expr/scalar_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tensor/convert.h"

namespace einrel {
namespace {

/// Of a position in row-major order.
std::vector<std::int64_t> indices_of(const Shape& shape, std::int64_t position) {
  std::vector<std::int64_t> indices(shape.size());
  for (std::size_t d = indices.size(); d-- > 0;) {
    const std::int64_t extent = std::max<std::int64_t>(shape[d].value(), 1);
    indices[d] = position % extent;
    position /= extent;
  }
  return indices;
}

}  // namespace

std::int64_t checked_range(const CheckRange& op, std::int64_t value, std::int64_t position) {
  if (value >= 0 && value < op.extent) return value;
  const std::vector<std::int64_t> indices = indices_of(op.shape, position);
  throw IndexOutOfRange(
      fmt::format("{0}[{1}] is {2}, but indexes a dimension of {3} of extent {4}: positions are from 0 up to {5}\n"
                  "  help: mend the data of {0}; or read 0 there: write pad({3}[...], 0) in place of {3}[...]",
                  op.tensor, fmt::join(indices, ","), value, op.indexed, op.extent, op.extent - 1),
      op.tensor, indices);
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
