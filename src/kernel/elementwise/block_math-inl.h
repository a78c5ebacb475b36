// The loops of block_math.h. Included by fused_loops.cpp once for each instruction set.

#include <cmath>

#include "base/error.h"
#include "kernel/elementwise/block_math.h"
#include "kernel/elementwise/vector_loops.h"
#include "kernel/elementwise/vector_math.h"

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
#include "einsum/expr/functions.def"
  }
  throw Bug("a function without a loop over groups");
}

template <class T>
void power_of_groups(const T* a, const T* b, T* z, std::size_t n) {
  map_values(
      n, z, [](T x, T y) { return power(x, y); }, a, b);
}

constexpr BlockMath all_block_math{{apply_groups<float>, apply_groups<double>},
                                   {power_of_groups<float>, power_of_groups<double>}};

}  // namespace
}  // namespace einrel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
