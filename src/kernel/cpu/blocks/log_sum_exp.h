#pragma once

#include <cstddef>
#include <cstdint>

namespace einrel {

// Sums of exponentials that do not overflow: `scaled` times exp(`largest`), where `largest` is the largest argument.

/// One more argument for each of n sums. V: float, double or int64.
template <class V>
void add_exponentials(double* largest, double* scaled, const V* x, std::size_t n);

/// The sum of exp(x[i] - largest), where no x[i] is above `largest` and equal infinities differ by 0.
template <class V>
double sum_exponentials(double largest, const V* x, std::size_t n);

}  // namespace einrel
