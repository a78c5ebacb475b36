#include "kernel/cpu/blocks/block_math.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "kernel/cpu/blocks/vector_loops.h"
#include "kernel/cpu/blocks/vector_math.h"
#include "kernel/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/blocks/block_math.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef EINREL_BLOCK_MATH
#define EINREL_BLOCK_MATH
namespace einrel {

template <class T>
using FunctionLoop = void (*)(UnaryFunction, const T*, T*, std::size_t);
template <class T>
using PowerLoop = void (*)(const T*, const T*, T*, std::size_t);

/// Every loop for one instruction set; std::get finds one by its type.
struct BlockMath {
  std::tuple<FunctionLoop<float>, FunctionLoop<double>> functions;
  std::tuple<PowerLoop<float>, PowerLoop<double>> powers;
};

}  // namespace einrel
#endif

HWY_BEFORE_NAMESPACE();
namespace einrel::HWY_NAMESPACE {
namespace {

// Our own for vectors, under the names that they have in functions.def.
template <class T>
[[gnu::always_inline]] inline T exp(T x) {
  return exponential(x);
}
template <class T>
[[gnu::always_inline]] inline T log(T x) {
  return logarithm(x);
}

template <class T>
// NOLINTNEXTLINE(readability-function-cognitive-complexity): a case for each row
void apply_groups(UnaryFunction function, const T* x_values, T* z, std::size_t n) {
  using enum Trait;
  switch (function) {
#define EINREL_UNARY(id, name, usage, meaning, traits, value, ...) \
  case UnaryFunction::id:                                          \
    if constexpr (((traits) | approximated) == (traits)) {         \
      return map_values(                                           \
          n, z, [](T x) -> T { return value; }, x_values);         \
    }                                                              \
    break;
#include "einsum/functions.def"
  }
  throw Bug("a function without a loop over groups");
}

template <class T>
void power_of_groups(const T* a, const T* b, T* z, std::size_t n) {
  map_values(
      n, z, [](T x, T y) { return power(x, y); }, a, b);
}

const BlockMath& block_math() {
  static constexpr BlockMath all{{apply_groups<float>, apply_groups<double>},
                                 {power_of_groups<float>, power_of_groups<double>}};
  return all;
}

}  // namespace
}  // namespace einrel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einrel {
namespace {

HWY_EXPORT(block_math);

/// A multiple of the lanes of every vector. Blocks are computed in whole groups, so that every value goes through the
/// vector functions, wherever it stands.
constexpr std::size_t group = 16;

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
  const auto loop = std::get<FunctionLoop<T>>(HWY_DYNAMIC_DISPATCH(block_math)().functions);
  for_groups([=](std::size_t count, T* to, const T* from) { loop(function, from, to, count); }, n, z, x);
}

template <class T>
void approximate_any_powers(const T* a, const T* b, T* z, std::size_t n) {
  const auto loop = std::get<PowerLoop<T>>(HWY_DYNAMIC_DISPATCH(block_math)().powers);
  for_groups([=](std::size_t count, T* to, const T* x, const T* y) { loop(x, y, to, count); }, n, z, a, b);
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
#endif
