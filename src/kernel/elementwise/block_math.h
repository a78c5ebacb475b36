#pragma once

#include <cstddef>
#include <tuple>

#include "einsum/expr/functions.h"

namespace einrel {

// The functions over blocks that are approximated: to 4 units in the last place, with the same bits wherever in a block
// a value stands. T is float or double.

/// z[i] = function(x[i]) for a function that is approximated.
template <class T>
void approximate(UnaryFunction function, const T* x, T* z, std::size_t n);

/// z[i] = a[i] to the power b[i].
template <class T>
void approximate_powers(const T* a, const T* b, T* z, std::size_t n);

/// The loops of whole groups of values for one instruction set; std::get finds one by its type.
struct BlockMath {
  template <class T>
  using Function = void (*)(UnaryFunction function, const T* x, T* z, std::size_t n);
  template <class T>
  using Power = void (*)(const T* a, const T* b, T* z, std::size_t n);

  std::tuple<Function<float>, Function<double>> functions;
  std::tuple<Power<float>, Power<double>> powers;
};
const BlockMath& block_math();

}  // namespace einrel
