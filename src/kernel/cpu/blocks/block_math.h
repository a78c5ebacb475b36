#pragma once

#include <cstddef>

#include "einsum/functions.h"

namespace einrel {

// The functions over blocks that are approximated: to 4 units in the last place, with the same bits wherever in a block
// a value stands.

constexpr bool is_approximated(UnaryFunction function) {
  switch (function) {
    case UnaryFunction::exp:
    case UnaryFunction::log:
    case UnaryFunction::log1p:
    case UnaryFunction::expm1:
    case UnaryFunction::tanh:
    case UnaryFunction::sigmoid:
    case UnaryFunction::gelu:
    case UnaryFunction::silu:
    case UnaryFunction::erf:
    case UnaryFunction::sin:
    case UnaryFunction::cos: return true;
    default: return false;
  }
}

/// z[i] = function(x[i]) for a function that is_approximated.
void approximate(UnaryFunction function, const float* x, float* z, std::size_t n);
void approximate(UnaryFunction function, const double* x, double* z, std::size_t n);

/// z[i] = a[i] to the power b[i].
void approximate_powers(const float* a, const float* b, float* z, std::size_t n);
void approximate_powers(const double* a, const double* b, double* z, std::size_t n);

}  // namespace einrel
