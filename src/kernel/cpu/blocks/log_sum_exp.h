#pragma once

#include <cstddef>
#include <cstdint>

namespace einrel {

// Sums of exponentials that do not overflow: `scaled` times exp(`largest`), where `largest` is the largest argument.

/// One more argument for each of n sums.
void add_exponentials(double* largest, double* scaled, const float* x, std::size_t n);
void add_exponentials(double* largest, double* scaled, const double* x, std::size_t n);
void add_exponentials(double* largest, double* scaled, const std::int64_t* x, std::size_t n);

/// The sum of exp(x[i] - largest), where no x[i] is above `largest` and equal infinities differ by 0.
double sum_exponentials(double largest, const float* x, std::size_t n);
double sum_exponentials(double largest, const double* x, std::size_t n);
double sum_exponentials(double largest, const std::int64_t* x, std::size_t n);

}  // namespace einrel
