#include "kernel/cpu/blocks/block_math.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernel/cpu/blocks/vector_clones.h"
#include "kernel/cpu/blocks/vector_math.h"

namespace einrel {
namespace {

/// A multiple of the lanes of every vector. Blocks are computed in whole groups, so that every value goes through the
/// vector functions, wherever it stands.
constexpr std::size_t group = 16;

template <class T>
[[gnu::always_inline]] inline void apply(UnaryFunction function, const T* x, T* z, std::size_t n) {
  n -= n % group;
  switch (function) {
    case UnaryFunction::exp:
      return map_values(
          n, z, [](T v) { return exponential(v); }, x);
    case UnaryFunction::log:
      return map_values(
          n, z, [](T v) { return logarithm(v); }, x);
    case UnaryFunction::log1p:
      return map_values(
          n, z, [](T v) { return std::log1p(v); }, x);
    case UnaryFunction::expm1:
      return map_values(
          n, z, [](T v) { return std::expm1(v); }, x);
    case UnaryFunction::tanh:
      return map_values(
          n, z, [](T v) { return std::tanh(v); }, x);
    case UnaryFunction::erf:
      return map_values(
          n, z, [](T v) { return std::erf(v); }, x);
    case UnaryFunction::sin:
      return map_values(
          n, z, [](T v) { return std::sin(v); }, x);
    case UnaryFunction::cos:
      return map_values(
          n, z, [](T v) { return std::cos(v); }, x);
    case UnaryFunction::sigmoid:
      return map_values(
          n, z, [](T v) { return sigmoid(v); }, x);
    case UnaryFunction::silu:
      return map_values(
          n, z, [](T v) { return silu(v); }, x);
    case UnaryFunction::gelu:
      return map_values(
          n, z, [](T v) { return gelu(v); }, x);
    default: throw Bug("a function without a loop over groups");
  }
}

// Clones cannot be templates.

EINREL_VECTOR_CLONES void apply_groups(UnaryFunction function, const float* x, float* z, std::size_t n) {
  apply(function, x, z, n);
}
EINREL_VECTOR_CLONES void apply_groups(UnaryFunction function, const double* x, double* z, std::size_t n) {
  apply(function, x, z, n);
}
EINREL_VECTOR_CLONES void power_of_groups(const float* a, const float* b, float* z, std::size_t n) {
  map_values(
      n - n % group, z, [](float x, float y) { return power(x, y); }, a, b);
}
EINREL_VECTOR_CLONES void power_of_groups(const double* a, const double* b, double* z, std::size_t n) {
  map_values(
      n - n % group, z, [](double x, double y) { return power(x, y); }, a, b);
}

/// Calls `loop` with whole groups: with a copy of the last values, filled up, where they are fewer.
template <class Loop, class T, class... Arguments>
void for_groups(Loop loop, std::size_t n, T* z, const Arguments*... arguments) {
  const std::size_t whole = n - n % group;
  loop(whole, z, arguments...);
  if (whole == n) return;
  struct Group {
    alignas(64) T values[group];
    Group(const T* from, std::size_t count) {
      std::copy_n(from, count, values);
      std::fill(values + count, values + group, from[0]);
    }
  };
  alignas(64) T results[group];
  loop(group, results, Group(arguments + whole, n - whole).values...);
  std::copy_n(results, n - whole, z + whole);
}

template <class T>
void approximate_any(UnaryFunction function, const T* x, T* z, std::size_t n) {
  for_groups([function](std::size_t count, T* to, const T* from) { apply_groups(function, from, to, count); }, n, z, x);
}

template <class T>
void approximate_any_powers(const T* a, const T* b, T* z, std::size_t n) {
  for_groups([](std::size_t count, T* to, const T* x, const T* y) { power_of_groups(x, y, to, count); }, n, z, a, b);
}

}  // namespace

void approximate(UnaryFunction function, const float* x, float* z, std::size_t n) {
  approximate_any(function, x, z, n);
}
void approximate(UnaryFunction function, const double* x, double* z, std::size_t n) {
  approximate_any(function, x, z, n);
}
void approximate_powers(const float* a, const float* b, float* z, std::size_t n) { approximate_any_powers(a, b, z, n); }
void approximate_powers(const double* a, const double* b, double* z, std::size_t n) {
  approximate_any_powers(a, b, z, n);
}

}  // namespace einrel
