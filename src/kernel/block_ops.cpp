#include "kernel/block_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "kernel/vector_clones.h"
#include "kernel/vector_math.h"
#include "tensor/convert.h"

namespace einrel {
namespace {

// What the clones call must be inlined into each of them.
template <class Function, class Result, class... Arguments>
[[gnu::always_inline]] inline void map(std::size_t n, Result* __restrict z, Function function,
                                       const Arguments* __restrict... arguments) {
  for (std::size_t i = 0; i < n; ++i) z[i] = function(arguments[i]...);
}

/// sigmoid(x) = (x >= 0 ? 1 : e) / (1 + e), where e = exp(-|x|) cannot overflow.
template <class T>
void sigmoid(const T* x, T* z, std::size_t n) {
  map(
      n, z, [](T v) { return -std::abs(v); }, x);
  alignas(64) T e[lanes_per_block]{};
  VectorMath<T>::exp(z, e, n);
  map(
      n, z, [](T v, T exponential) { return (v >= 0 ? 1 : exponential) / (1 + exponential); }, x, e);
}

/// The formula's limit at -inf, where it would give inf * 0, is 0.
template <class T>
T zero_at_minus_infinity(T x, T value) {
  return x == -std::numeric_limits<T>::infinity() ? 0 : value;
}

template <class T>
void silu(const T* x, T* z, std::size_t n) {
  alignas(64) T s[lanes_per_block]{};
  sigmoid(x, s, n);
  map(
      n, z, [](T v, T sigmoid_of_v) { return zero_at_minus_infinity(v, v * sigmoid_of_v); }, x, s);
}

/// x / 2 * erfc(-x / sqrt(2)), in double: the error of the argument grows with x^2 in erfc's tail.
template <class T>
void gelu(const T* x, T* z, std::size_t n) {
  alignas(64) double argument[lanes_per_block]{};
  alignas(64) double erfc[lanes_per_block]{};
  map(
      n, argument, [](T v) { return -static_cast<double>(v) / std::numbers::sqrt2; }, x);
  VectorMath<double>::erfc(argument, erfc, n);
  const auto product = [](T v, double e) {
    return static_cast<T>(zero_at_minus_infinity(static_cast<double>(v), static_cast<double>(v) / 2 * e));
  };
  map(n, z, product, x, erfc);
}

/// The functions that call others; false for the rest.
template <class T>
bool apply_transcendental(UnaryFunction function, const T* x, T* z, std::size_t n) {
  switch (function) {
    case UnaryFunction::exp: VectorMath<T>::exp(x, z, n); return true;
    case UnaryFunction::log: VectorMath<T>::log(x, z, n); return true;
    case UnaryFunction::log1p: VectorMath<T>::log1p(x, z, n); return true;
    case UnaryFunction::expm1: VectorMath<T>::expm1(x, z, n); return true;
    case UnaryFunction::tanh: VectorMath<T>::tanh(x, z, n); return true;
    case UnaryFunction::erf: VectorMath<T>::erf(x, z, n); return true;
    case UnaryFunction::sin: VectorMath<T>::sin(x, z, n); return true;
    case UnaryFunction::cos: VectorMath<T>::cos(x, z, n); return true;
    case UnaryFunction::sigmoid: sigmoid(x, z, n); return true;
    case UnaryFunction::silu: silu(x, z, n); return true;
    case UnaryFunction::gelu: gelu(x, z, n); return true;
    default: return false;
  }
}

template <class T>
[[gnu::always_inline]] inline void apply_float(UnaryFunction function, const T* x, T* z, std::size_t n) {
  switch (function) {
    case UnaryFunction::negate:
      return map(
          n, z, [](T v) { return -v; }, x);
    case UnaryFunction::abs:
      return map(
          n, z, [](T v) { return std::abs(v); }, x);
    case UnaryFunction::sqrt:
      return map(
          n, z, [](T v) { return std::sqrt(v); }, x);
    case UnaryFunction::rsqrt:
      return map(
          n, z, [](T v) { return 1 / std::sqrt(v); }, x);
    case UnaryFunction::sq:
      return map(
          n, z, [](T v) { return v * v; }, x);
    case UnaryFunction::relu:
      return map(
          n, z, [](T v) { return v >= 0 || v != v ? v : 0; }, x);
    case UnaryFunction::step:
      return map(
          n, z, [](T v) { return v != v ? v : static_cast<T>(v > 0); }, x);
    case UnaryFunction::floor:
      return map(
          n, z, [](T v) { return std::floor(v); }, x);
    default: throw Bug("a function of floats without a loop");
  }
}

template <class T>
[[gnu::always_inline]] inline void apply_float(BinaryFunction function, const T* x, const T* y, T* z, std::size_t n) {
  switch (function) {
    case BinaryFunction::add:
      return map(
          n, z, [](T a, T b) { return a + b; }, x, y);
    case BinaryFunction::subtract:
      return map(
          n, z, [](T a, T b) { return a - b; }, x, y);
    case BinaryFunction::multiply:
      return map(
          n, z, [](T a, T b) { return a * b; }, x, y);
    case BinaryFunction::divide:
      return map(
          n, z, [](T a, T b) { return a / b; }, x, y);
    case BinaryFunction::maximum:
      return map(
          n, z, [](T a, T b) { return a >= b || a != a ? a : b; }, x, y);
    case BinaryFunction::minimum:
      return map(
          n, z, [](T a, T b) { return a <= b || a != a ? a : b; }, x, y);
    default: throw Bug("a function of two floats without a loop");
  }
}

template <class T>
[[gnu::always_inline]] inline void compare(BinaryFunction function, const T* x, const T* y, std::int64_t* z,
                                           std::size_t n) {
  switch (function) {
    case BinaryFunction::less:
      return map(
          n, z, [](T a, T b) { return a < b; }, x, y);
    case BinaryFunction::less_equal:
      return map(
          n, z, [](T a, T b) { return a <= b; }, x, y);
    case BinaryFunction::greater:
      return map(
          n, z, [](T a, T b) { return a > b; }, x, y);
    case BinaryFunction::greater_equal:
      return map(
          n, z, [](T a, T b) { return a >= b; }, x, y);
    case BinaryFunction::equal:
      return map(
          n, z, [](T a, T b) { return a == b; }, x, y);
    case BinaryFunction::not_equal:
      return map(
          n, z, [](T a, T b) { return a != b; }, x, y);
    default: throw Bug("a comparison without a loop");
  }
}

template <class T>
[[gnu::always_inline]] inline void select(const std::int64_t* c, const T* x, const T* y, T* z, std::size_t n) {
  map(
      n, z, [](std::int64_t condition, T a, T b) { return condition != 0 ? a : b; }, c, x, y);
}

template <class From, class To>
[[gnu::always_inline]] inline void convert(DType to, const From* x, To* z, std::size_t n) {
  if constexpr (std::is_floating_point_v<To>) {
    map(
        n, z, [](From v) { return static_cast<To>(v); }, x);
  } else {
    switch (to) {
      case DType::i32:
        return map(
            n, z, [](From v) { return widen(narrow<std::int32_t>(v)); }, x);
      case DType::i64:
        return map(
            n, z, [](From v) { return widen(narrow<std::int64_t>(v)); }, x);
      case DType::boolean:
        return map(
            n, z, [](From v) { return static_cast<std::int64_t>(v != 0); }, x);
      default: throw Bug("int64 holds no floats");
    }
  }
}

/// bf16 and f16 are computed in f32, not in double.
template <class Stored>
auto loaded(Stored value) {
  if constexpr (std::is_same_v<Stored, BFloat16> || std::is_same_v<Stored, Float16>) {
    return to_float(value);
  } else if constexpr (std::is_same_v<Stored, float>) {
    return value;
  } else {
    return widen(value);
  }
}

template <class Stored>
Stored element(const std::byte* at) {
  Stored value;
  std::memcpy(&value, at, sizeof(Stored));
  return value;
}

template <class Stored, class T>
[[gnu::always_inline]] inline void load_span(const std::byte* from, std::int64_t step, T* __restrict z, std::size_t n) {
  if (step == 1) {
    for (std::size_t i = 0; i < n; ++i) z[i] = loaded(element<Stored>(from + i * sizeof(Stored)));
  } else if (step == 0) {
    std::fill_n(z, n, loaded(element<Stored>(from)));
  } else {
    const std::int64_t stride = step * static_cast<std::int64_t>(sizeof(Stored));
    for (std::size_t i = 0; i < n; ++i) {
      z[i] = loaded(element<Stored>(from + stride * static_cast<std::int64_t>(i)));
    }
  }
}

template <class T>
[[gnu::always_inline]] inline void load(DType stored, const std::byte* data, const ElementSpan* spans,
                                        std::size_t span_count, std::int64_t step, T* z) {
  with_stored_type(stored, [&]<class Stored>() {
    if constexpr (std::is_same_v<decltype(loaded(Stored{})), T>) {
      for (const ElementSpan* span = spans; span != spans + span_count; ++span) {
        const std::byte* const from = data + span->offset * static_cast<std::int64_t>(sizeof(Stored));
        load_span<Stored>(from, step, z + span->first, span->count);
      }
    } else {
      throw Bug("an element loaded into a block of another type");
    }
  });
}

template <class Stored, class T>
[[gnu::always_inline]] inline void store_as(const T* __restrict x, std::byte* to, std::int64_t step, std::size_t n) {
  if (step == 1) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto value = narrow<Stored>(x[i]);
      std::memcpy(to + i * sizeof(Stored), &value, sizeof(Stored));
    }
    return;
  }
  const std::int64_t stride = step * static_cast<std::int64_t>(sizeof(Stored));
  for (std::size_t i = 0; i < n; ++i) {
    const auto value = narrow<Stored>(x[i]);
    std::memcpy(to + stride * static_cast<std::int64_t>(i), &value, sizeof(Stored));
  }
}

template <class T>
[[gnu::always_inline]] inline void store(DType stored, const T* x, std::byte* to, std::int64_t step, std::size_t n) {
  with_stored_type(stored, [&]<class Stored>() { store_as<Stored>(x, to, step, n); });
}

/// Integer arithmetic modulo 2^64.
using Bits = std::uint64_t;

[[gnu::always_inline]] inline void apply_integer(UnaryFunction function, const std::int64_t* x, std::int64_t* z,
                                                 std::size_t n) {
  using I = std::int64_t;
  switch (function) {
    case UnaryFunction::negate:
      return map(
          n, z, [](I v) { return static_cast<I>(Bits{0} - static_cast<Bits>(v)); }, x);
    case UnaryFunction::abs:
      return map(
          n, z, [](I v) { return v < 0 ? static_cast<I>(Bits{0} - static_cast<Bits>(v)) : v; }, x);
    case UnaryFunction::sq:
      return map(
          n, z, [](I v) { return static_cast<I>(static_cast<Bits>(v) * static_cast<Bits>(v)); }, x);
    case UnaryFunction::relu:
      return map(
          n, z, [](I v) { return v > 0 ? v : 0; }, x);
    case UnaryFunction::step:
      return map(
          n, z, [](I v) { return static_cast<I>(v > 0); }, x);
    case UnaryFunction::floor:
      return map(
          n, z, [](I v) { return v; }, x);
    default: throw Bug("a function of floats applied to an integer");
  }
}

[[gnu::always_inline]] inline void apply_integer(BinaryFunction function, const std::int64_t* x, const std::int64_t* y,
                                                 std::int64_t* z, std::size_t n) {
  using I = std::int64_t;
  switch (function) {
    case BinaryFunction::add:
      return map(
          n, z, [](I a, I b) { return static_cast<I>(static_cast<Bits>(a) + static_cast<Bits>(b)); }, x, y);
    case BinaryFunction::subtract:
      return map(
          n, z, [](I a, I b) { return static_cast<I>(static_cast<Bits>(a) - static_cast<Bits>(b)); }, x, y);
    case BinaryFunction::multiply:
      return map(
          n, z, [](I a, I b) { return static_cast<I>(static_cast<Bits>(a) * static_cast<Bits>(b)); }, x, y);
    case BinaryFunction::power:
      return map(
          n, z, [](I a, I b) { return apply(BinaryFunction::power, a, b); }, x, y);
    case BinaryFunction::maximum:
      return map(
          n, z, [](I a, I b) { return a > b ? a : b; }, x, y);
    case BinaryFunction::minimum:
      return map(
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
  if (!apply_transcendental(function, x, z, n)) apply_simple(function, x, z, n);
}
void apply_block(UnaryFunction function, const double* x, double* z, std::size_t n) {
  if (!apply_transcendental(function, x, z, n)) apply_simple(function, x, z, n);
}
EINREL_VECTOR_CLONES void apply_block(UnaryFunction function, const std::int64_t* x, std::int64_t* z, std::size_t n) {
  apply_integer(function, x, z, n);
}

void apply_block(BinaryFunction function, const float* a, const float* b, float* z, std::size_t n) {
  if (function == BinaryFunction::power) return VectorMath<float>::pow(a, b, z, n);
  apply_simple(function, a, b, z, n);
}
void apply_block(BinaryFunction function, const double* a, const double* b, double* z, std::size_t n) {
  if (function == BinaryFunction::power) return VectorMath<double>::pow(a, b, z, n);
  apply_simple(function, a, b, z, n);
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

void convert_block(DType to, const float* x, float* z, std::size_t n) { convert(to, x, z, n); }
void convert_block(DType to, const float* x, double* z, std::size_t n) { convert(to, x, z, n); }
void convert_block(DType to, const float* x, std::int64_t* z, std::size_t n) { convert(to, x, z, n); }
void convert_block(DType to, const double* x, float* z, std::size_t n) { convert(to, x, z, n); }
void convert_block(DType to, const double* x, double* z, std::size_t n) { convert(to, x, z, n); }
void convert_block(DType to, const double* x, std::int64_t* z, std::size_t n) { convert(to, x, z, n); }
void convert_block(DType to, const std::int64_t* x, float* z, std::size_t n) { convert(to, x, z, n); }
void convert_block(DType to, const std::int64_t* x, double* z, std::size_t n) { convert(to, x, z, n); }
void convert_block(DType to, const std::int64_t* x, std::int64_t* z, std::size_t n) { convert(to, x, z, n); }

EINREL_VECTOR_CLONES void load_block(DType stored, const std::byte* data, const ElementSpan* spans,
                                     std::size_t span_count, std::int64_t step, float* z) {
  load(stored, data, spans, span_count, step, z);
}
EINREL_VECTOR_CLONES void load_block(DType stored, const std::byte* data, const ElementSpan* spans,
                                     std::size_t span_count, std::int64_t step, double* z) {
  load(stored, data, spans, span_count, step, z);
}
EINREL_VECTOR_CLONES void load_block(DType stored, const std::byte* data, const ElementSpan* spans,
                                     std::size_t span_count, std::int64_t step, std::int64_t* z) {
  load(stored, data, spans, span_count, step, z);
}

EINREL_VECTOR_CLONES void store_block(DType stored, const float* x, std::byte* to, std::int64_t step, std::size_t n) {
  store(stored, x, to, step, n);
}
EINREL_VECTOR_CLONES void store_block(DType stored, const double* x, std::byte* to, std::int64_t step, std::size_t n) {
  store(stored, x, to, step, n);
}
EINREL_VECTOR_CLONES void store_block(DType stored, const std::int64_t* x, std::byte* to, std::int64_t step,
                                      std::size_t n) {
  store(stored, x, to, step, n);
}

}  // namespace einrel
