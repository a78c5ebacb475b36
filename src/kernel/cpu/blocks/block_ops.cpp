#include "kernel/cpu/blocks/block_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "kernel/cpu/blocks/block_math.h"
#include "kernel/cpu/blocks/vector_clones.h"
#include "tensor/convert.h"

namespace einrel {
namespace {

template <class T>
[[gnu::always_inline]] inline void apply_float(UnaryFunction function, const T* x, T* z, std::size_t n) {
  switch (function) {
    case UnaryFunction::negate:
      return map_values(
          n, z, [](T v) { return -v; }, x);
    case UnaryFunction::abs:
      return map_values(
          n, z, [](T v) { return std::abs(v); }, x);
    case UnaryFunction::sqrt:
      return map_values(
          n, z, [](T v) { return std::sqrt(v); }, x);
    case UnaryFunction::rsqrt:
      return map_values(
          n, z, [](T v) { return 1 / std::sqrt(v); }, x);
    case UnaryFunction::sq:
      return map_values(
          n, z, [](T v) { return v * v; }, x);
    case UnaryFunction::relu:
      return map_values(
          n, z, [](T v) { return v >= 0 || v != v ? v : 0; }, x);
    case UnaryFunction::step:
      return map_values(
          n, z, [](T v) { return v != v ? v : static_cast<T>(v > 0); }, x);
    case UnaryFunction::floor:
      return map_values(
          n, z, [](T v) { return std::floor(v); }, x);
    default: throw Bug("a function of floats without a loop");
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

/// z[i] = function(x[i], y[i]), where x and y are pointers, Same or Widened. z may be one of them.
template <class T, class X, class Y, class Function>
[[gnu::always_inline]] inline void map_pairs(std::size_t n, T* z, X x, Y y, Function function) {
  EINREL_INDEPENDENT_ITERATIONS
  for (std::size_t i = 0; i < n; ++i) z[i] = function(x[i], y[i]);
}

template <class T, class X, class Y>
[[gnu::always_inline]] inline void apply_float(BinaryFunction function, X x, Y y, T* z, std::size_t n) {
  switch (function) {
    case BinaryFunction::add: return map_pairs(n, z, x, y, [](T a, T b) { return a + b; });
    case BinaryFunction::subtract: return map_pairs(n, z, x, y, [](T a, T b) { return a - b; });
    case BinaryFunction::multiply: return map_pairs(n, z, x, y, [](T a, T b) { return a * b; });
    case BinaryFunction::divide: return map_pairs(n, z, x, y, [](T a, T b) { return a / b; });
    case BinaryFunction::maximum: return map_pairs(n, z, x, y, [](T a, T b) { return a >= b || a != a ? a : b; });
    case BinaryFunction::minimum: return map_pairs(n, z, x, y, [](T a, T b) { return a <= b || a != a ? a : b; });
    default: throw Bug("a function of two floats without a loop");
  }
}

template <class T>
[[gnu::always_inline]] inline void compare(BinaryFunction function, const T* x, const T* y, std::int64_t* z,
                                           std::size_t n) {
  switch (function) {
    case BinaryFunction::less:
      return map_values(
          n, z, [](T a, T b) { return a < b; }, x, y);
    case BinaryFunction::less_equal:
      return map_values(
          n, z, [](T a, T b) { return a <= b; }, x, y);
    case BinaryFunction::greater:
      return map_values(
          n, z, [](T a, T b) { return a > b; }, x, y);
    case BinaryFunction::greater_equal:
      return map_values(
          n, z, [](T a, T b) { return a >= b; }, x, y);
    case BinaryFunction::equal:
      return map_values(
          n, z, [](T a, T b) { return a == b; }, x, y);
    case BinaryFunction::not_equal:
      return map_values(
          n, z, [](T a, T b) { return a != b; }, x, y);
    default: throw Bug("a comparison without a loop");
  }
}

template <class T>
[[gnu::always_inline]] inline void select(const std::int64_t* c, const T* x, const T* y, T* z, std::size_t n) {
  map_values(
      n, z, [](std::int64_t condition, T a, T b) { return condition != 0 ? a : b; }, c, x, y);
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
[[gnu::always_inline]] inline void convert(DType to, const From* x, To* z, std::size_t n) {
  if constexpr (std::is_floating_point_v<To>) {
    map_values(
        n, z, [](From v) { return static_cast<To>(v); }, x);
  } else {
    switch (to) {
      case DType::i32:
        return map_values(
            n, z, [](From v) { return as_integer<std::int32_t>(v); }, x);
      case DType::i64:
        return map_values(
            n, z, [](From v) { return as_integer<std::int64_t>(v); }, x);
      case DType::boolean:
        return map_values(
            n, z, [](From v) { return static_cast<std::int64_t>(v != 0); }, x);
      default: throw Bug("int64 holds no floats");
    }
  }
}

/// Integer arithmetic modulo 2^64.
using Bits = std::uint64_t;

[[gnu::always_inline]] inline void apply_integer(UnaryFunction function, const std::int64_t* x, std::int64_t* z,
                                                 std::size_t n) {
  using I = std::int64_t;
  switch (function) {
    case UnaryFunction::negate:
      return map_values(
          n, z, [](I v) { return static_cast<I>(Bits{0} - static_cast<Bits>(v)); }, x);
    case UnaryFunction::abs:
      return map_values(
          n, z, [](I v) { return v < 0 ? static_cast<I>(Bits{0} - static_cast<Bits>(v)) : v; }, x);
    case UnaryFunction::sq:
      return map_values(
          n, z, [](I v) { return static_cast<I>(static_cast<Bits>(v) * static_cast<Bits>(v)); }, x);
    case UnaryFunction::relu:
      return map_values(
          n, z, [](I v) { return v > 0 ? v : 0; }, x);
    case UnaryFunction::step:
      return map_values(
          n, z, [](I v) { return static_cast<I>(v > 0); }, x);
    case UnaryFunction::floor:
      return map_values(
          n, z, [](I v) { return v; }, x);
    default: throw Bug("a function of floats applied to an integer");
  }
}

[[gnu::always_inline]] inline void apply_integer(BinaryFunction function, const std::int64_t* x, const std::int64_t* y,
                                                 std::int64_t* z, std::size_t n) {
  using I = std::int64_t;
  switch (function) {
    case BinaryFunction::add:
      return map_values(
          n, z, [](I a, I b) { return static_cast<I>(static_cast<Bits>(a) + static_cast<Bits>(b)); }, x, y);
    case BinaryFunction::subtract:
      return map_values(
          n, z, [](I a, I b) { return static_cast<I>(static_cast<Bits>(a) - static_cast<Bits>(b)); }, x, y);
    case BinaryFunction::multiply:
      return map_values(
          n, z, [](I a, I b) { return static_cast<I>(static_cast<Bits>(a) * static_cast<Bits>(b)); }, x, y);
    case BinaryFunction::power:
      return map_values(
          n, z, [](I a, I b) { return apply(BinaryFunction::power, a, b); }, x, y);
    case BinaryFunction::maximum:
      return map_values(
          n, z, [](I a, I b) { return a > b ? a : b; }, x, y);
    case BinaryFunction::minimum:
      return map_values(
          n, z, [](I a, I b) { return a < b ? a : b; }, x, y);
    default: throw Bug("a function of two integers without a loop");
  }
}

// The inner loops once more for each instruction set. (Clones cannot be templates.)

EINREL_VECTOR_CLONES void apply_simple(UnaryFunction function, const float* x, float* z, std::size_t n) {
  apply_float(function, x, z, n);
}
EINREL_VECTOR_CLONES void apply_simple(UnaryFunction function, const double* x, double* z, std::size_t n) {
  apply_float(function, x, z, n);
}
EINREL_VECTOR_CLONES void apply_simple(BinaryFunction function, const float* a, const float* b, float* z,
                                       std::size_t n) {
  apply_float(function, a, b, z, n);
}
EINREL_VECTOR_CLONES void apply_simple(BinaryFunction function, const double* a, const double* b, double* z,
                                       std::size_t n) {
  apply_float(function, a, b, z, n);
}

}  // namespace

void apply_block(UnaryFunction function, const float* x, float* z, std::size_t n) {
  is_approximated(function) ? approximate(function, x, z, n) : apply_simple(function, x, z, n);
}
void apply_block(UnaryFunction function, const double* x, double* z, std::size_t n) {
  is_approximated(function) ? approximate(function, x, z, n) : apply_simple(function, x, z, n);
}
EINREL_VECTOR_CLONES void apply_block(UnaryFunction function, const std::int64_t* x, std::int64_t* z, std::size_t n) {
  apply_integer(function, x, z, n);
}

EINREL_VECTOR_CLONES void apply_block(BinaryFunction function, const float* a, float b, float* z, std::size_t n) {
  apply_float(function, a, Same<float>{b}, z, n);
}
EINREL_VECTOR_CLONES void apply_block(BinaryFunction function, float a, const float* b, float* z, std::size_t n) {
  apply_float(function, Same<float>{a}, b, z, n);
}
EINREL_VECTOR_CLONES void apply_block(BinaryFunction function, const double* a, double b, double* z, std::size_t n) {
  apply_float(function, a, Same<double>{b}, z, n);
}
EINREL_VECTOR_CLONES void apply_block(BinaryFunction function, double a, const double* b, double* z, std::size_t n) {
  apply_float(function, Same<double>{a}, b, z, n);
}
void apply_block(BinaryFunction function, const float* a, const float* b, float* z, std::size_t n) {
  if (function == BinaryFunction::power) return approximate_powers(a, b, z, n);
  apply_simple(function, a, b, z, n);
}
void apply_block(BinaryFunction function, const double* a, const double* b, double* z, std::size_t n) {
  if (function == BinaryFunction::power) return approximate_powers(a, b, z, n);
  apply_simple(function, a, b, z, n);
}
EINREL_VECTOR_CLONES void apply_block(BinaryFunction function, const BFloat16* a, const BFloat16* b, float* z,
                                      std::size_t n) {
  apply_float(function, Widened{a}, Widened{b}, z, n);
}
EINREL_VECTOR_CLONES void apply_block(BinaryFunction function, const BFloat16* a, const float* b, float* z,
                                      std::size_t n) {
  apply_float(function, Widened{a}, b, z, n);
}
EINREL_VECTOR_CLONES void apply_block(BinaryFunction function, const float* a, const BFloat16* b, float* z,
                                      std::size_t n) {
  apply_float(function, a, Widened{b}, z, n);
}
EINREL_VECTOR_CLONES void apply_block(BinaryFunction function, const BFloat16* a, float b, float* z, std::size_t n) {
  apply_float(function, Widened{a}, Same<float>{b}, z, n);
}
EINREL_VECTOR_CLONES void apply_block(BinaryFunction function, float a, const BFloat16* b, float* z, std::size_t n) {
  apply_float(function, Same<float>{a}, Widened{b}, z, n);
}
EINREL_VECTOR_CLONES void apply_block(BinaryFunction function, const std::int64_t* a, const std::int64_t* b,
                                      std::int64_t* z, std::size_t n) {
  apply_integer(function, a, b, z, n);
}

EINREL_VECTOR_CLONES void compare_block(BinaryFunction function, const float* a, const float* b, std::int64_t* z,
                                        std::size_t n) {
  compare(function, a, b, z, n);
}
EINREL_VECTOR_CLONES void compare_block(BinaryFunction function, const double* a, const double* b, std::int64_t* z,
                                        std::size_t n) {
  compare(function, a, b, z, n);
}
EINREL_VECTOR_CLONES void compare_block(BinaryFunction function, const std::int64_t* a, const std::int64_t* b,
                                        std::int64_t* z, std::size_t n) {
  compare(function, a, b, z, n);
}

EINREL_VECTOR_CLONES void select_block(const std::int64_t* c, const float* a, const float* b, float* z, std::size_t n) {
  select(c, a, b, z, n);
}
EINREL_VECTOR_CLONES void select_block(const std::int64_t* c, const double* a, const double* b, double* z,
                                       std::size_t n) {
  select(c, a, b, z, n);
}
EINREL_VECTOR_CLONES void select_block(const std::int64_t* c, const std::int64_t* a, const std::int64_t* b,
                                       std::int64_t* z, std::size_t n) {
  select(c, a, b, z, n);
}

EINREL_VECTOR_CLONES void ramp_block(std::int64_t first, std::int64_t step, std::int64_t* z, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i, first += step) z[i] = first;
}

EINREL_VECTOR_CLONES void convert_block(DType to, const float* x, float* z, std::size_t n) { convert(to, x, z, n); }
EINREL_VECTOR_CLONES void convert_block(DType to, const float* x, double* z, std::size_t n) { convert(to, x, z, n); }
EINREL_VECTOR_CLONES void convert_block(DType to, const float* x, std::int64_t* z, std::size_t n) {
  convert(to, x, z, n);
}
EINREL_VECTOR_CLONES void convert_block(DType to, const double* x, float* z, std::size_t n) { convert(to, x, z, n); }
EINREL_VECTOR_CLONES void convert_block(DType to, const double* x, double* z, std::size_t n) { convert(to, x, z, n); }
EINREL_VECTOR_CLONES void convert_block(DType to, const double* x, std::int64_t* z, std::size_t n) {
  convert(to, x, z, n);
}
EINREL_VECTOR_CLONES void convert_block(DType to, const std::int64_t* x, float* z, std::size_t n) {
  convert(to, x, z, n);
}
EINREL_VECTOR_CLONES void convert_block(DType to, const std::int64_t* x, double* z, std::size_t n) {
  convert(to, x, z, n);
}
EINREL_VECTOR_CLONES void convert_block(DType to, const std::int64_t* x, std::int64_t* z, std::size_t n) {
  convert(to, x, z, n);
}

}  // namespace einrel
