// The loops of block_ops.h between values. Included by exact_loops.cpp once for each instruction set.

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "einsum/expr/whole_number.h"
#include "kernel/elementwise/block_math.h"
#include "kernel/elementwise/block_ops.h"
#include "kernel/elementwise/vector_loops.h"
#include "tensor/convert.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::HWY_NAMESPACE {
namespace {

/// What values of a type are computed as, and how they are kept.
template <class Value>
using Computed = std::conditional_t<std::is_same_v<Value, std::int64_t>, WholeNumber, Value>;
template <class T>
T kept(T x) {
  return x;
}
std::int64_t kept(WholeNumber x) { return x.value; }

template <class Value>
// NOLINTNEXTLINE(readability-function-cognitive-complexity): a case for each row
void apply_unary(UnaryFunction function, const Value* values, Value* z, std::size_t n) {
  using std::abs;
  using std::floor;
  using enum Trait;
  using T = Computed<Value>;
  switch (function) {
#define EINREL_UNARY(id, name, usage, meaning, traits, value, ...)                     \
  case UnaryFunction::id:                                                              \
    if constexpr (((traits) | whole) == (traits) ||                                    \
                  (std::is_same_v<T, Value> && ((traits) | approximated) != (traits))) \
      return map_values(                                                               \
          n, z, [](T x) { return kept(static_cast<T>(value)); }, values);              \
    break;
#include "einsum/expr/functions.def"
  }
  if constexpr (std::is_same_v<T, Value>) {
    approximate(function, values, z, n);
  } else {
    throw Bug("a function of floats applied to an integer");
  }
}

/// One number in the place of many.
template <class T>
struct Same {
  T value;
  T operator[](std::size_t) const { return value; }
};

struct Widened {
  const BFloat16* values;
  float operator[](std::size_t i) const { return to_float(values[i]); }
};

template <class T>
const T* indexed(const T* values) {
  return values;
}
Widened indexed(const BFloat16* values) { return {values}; }
template <class T>
Same<T> indexed(T value) {
  return {value};
}

template <class A, class B, class Value>
// NOLINTNEXTLINE(readability-function-cognitive-complexity): a case for each row
void apply_binary(BinaryFunction function, A a_values, B b_values, Value* z, std::size_t n) {
  using T = Computed<Value>;
  if constexpr (std::is_floating_point_v<T> && std::is_same_v<A, const T*> && std::is_same_v<B, const T*>) {
    if (function == BinaryFunction::power) return approximate_powers(a_values, b_values, z, n);
  }
  switch (function) {
#define EINREL_BINARY(id, name, usage, meaning, kind, value)                                 \
  case BinaryFunction::id:                                                                   \
    if constexpr (BinaryKind::kind != BinaryKind::comparison &&                              \
                  (std::is_same_v<Value, Truth> ? BinaryKind::kind == BinaryKind::extreme    \
                   : std::is_same_v<T, Value>   ? BinaryKind::kind != BinaryKind::power      \
                                                : BinaryKind::kind != BinaryKind::quotient))   \
      return map_values(                                                                     \
          n, z, [](T a, T b) { return kept(value); }, indexed(a_values), indexed(b_values)); \
    break;
#include "einsum/expr/functions.def"
  }
  throw Bug("a function of two values without a loop");
}

template <class T>
// NOLINTNEXTLINE(readability-function-cognitive-complexity): a case for each row
void compare(BinaryFunction function, const T* a_values, const T* b_values, Truth* z, std::size_t n) {
  switch (function) {
#define EINREL_BINARY(id, name, usage, meaning, kind, value)                  \
  case BinaryFunction::id:                                                    \
    if constexpr (BinaryKind::kind == BinaryKind::comparison)                 \
      return map_values(                                                      \
          n, z, [](T a, T b) -> Truth { return value; }, a_values, b_values); \
    break;
#include "einsum/expr/functions.def"
  }
  throw Bug("a comparison without a loop");
}

template <class T>
void select(const Truth* c, const T* x, const T* y, T* z, std::size_t n) {
  map_values(
      n, z, [](Truth condition, T a, T b) { return condition != 0 ? a : b; }, c, x, y);
}

/// saturate<Integer> without branches.
template <class Integer>
[[gnu::always_inline]] inline std::int64_t saturated(double value) {
  constexpr auto least = static_cast<double>(std::numeric_limits<Integer>::min());
  // The largest double that fits: 2^31 - 1, or the one before 2^63.
  constexpr double greatest = sizeof(Integer) == 4 ? 0x7FFFFFFFp0 : 0x7FFFFFFFFFFFFC00p0;
  double limited = value > greatest ? greatest : value;
  limited = limited < least ? least : limited;
  limited = limited == limited ? limited : 0;
  return value > greatest ? std::numeric_limits<Integer>::max() : static_cast<Integer>(limited);
}

template <class Integer, class From>
[[gnu::always_inline]] inline std::int64_t as_integer(From value) {
  if constexpr (std::is_floating_point_v<From>) {
    return saturated<Integer>(static_cast<double>(value));
  } else {
    return static_cast<Integer>(value);
  }
}

template <class From, class To>
void convert(DType to, const From* x, To* z, std::size_t n) {
  if constexpr (std::is_floating_point_v<To>) {
    map_values(
        n, z, [](From v) { return static_cast<To>(v); }, x);
  } else if constexpr (std::is_same_v<To, Truth>) {
    map_values(
        n, z, [](From v) -> Truth { return v != 0; }, x);
  } else {
    switch (to) {
      case DType::i32:
        return map_values(
            n, z, [](From v) { return as_integer<std::int32_t>(v); }, x);
      case DType::i64:
        return map_values(
            n, z, [](From v) { return as_integer<std::int64_t>(v); }, x);
      default: throw Bug("int64 holds no floats");
    }
  }
}

void ramp(std::int64_t first, std::int64_t step, std::int64_t* z, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i, first += step) z[i] = first;
}

constexpr BlockOps all_block_ops{
    {apply_unary<float>, apply_unary<double>, apply_unary<std::int64_t>},
    {apply_binary, apply_binary, apply_binary, apply_binary, apply_binary, apply_binary, apply_binary, apply_binary,
     apply_binary, apply_binary, apply_binary, apply_binary, apply_binary},
    {compare<float>, compare<double>, compare<std::int64_t>, compare<Truth>},
    {select<float>, select<double>, select<std::int64_t>, select<Truth>},
    {convert, convert, convert, convert, convert, convert, convert, convert, convert, convert, convert, convert,
     convert, convert, convert, convert},
    ramp};

}  // namespace
}  // namespace einrel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
