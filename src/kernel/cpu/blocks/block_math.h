#pragma once

#include <cstddef>

#include "einsum/functions.h"

namespace einrel {

// The functions over blocks that are approximated: to 4 units in the last place, with the same bits wherever in a block
// a value stands.

/// z[i] = function(x[i]) for a function that is approximated.
void approximate(UnaryFunction function, const float* x, float* z, std::size_t n);
void approximate(UnaryFunction function, const double* x, double* z, std::size_t n);

/// z[i] = a[i] to the power b[i].
void approximate_powers(const float* a, const float* b, float* z, std::size_t n);
void approximate_powers(const double* a, const double* b, double* z, std::size_t n);

}  // namespace einrel
