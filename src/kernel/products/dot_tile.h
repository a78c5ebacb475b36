#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernel/products/combination.h"

namespace einrel::contraction {

/// Some rows of A against some columns of B, whose inner positions lie side by side in both:
/// sums[r * columns + c] = reduce over o and p of join(A[r, o, p], B[c, o, p]).
template <class T, class Stored>
struct DotTile {
  const Stored* a = nullptr;  ///< A[r, o, p] at a[r * a_row + a_outer[o] + p]
  const T* b = nullptr;       ///< B[c, o, p] at b[c * b_column + b_outer[o] + p]
  std::int64_t a_row = 0;
  std::int64_t b_column = 0;
  std::int64_t inner = 1;
  const std::int64_t* a_outer = nullptr;
  const std::int64_t* b_outer = nullptr;
  std::int64_t outer = 1;
  T* results = nullptr;
};

template <class T, class Stored>
using DotFunction = void (*)(const DotTile<T, Stored>&);

/// Kernels of 1, 2, 4 and 8 rows and 1, 2 and 4 columns; null where there is none: all but sums of products of floats
/// have only the first. An element's result does not depend on which of them computes it.
template <class T, class Stored>
struct DotKernels {
  std::array<std::array<DotFunction<T, Stored>, 3>, 4> functions{};
  std::int64_t vector = 1;  ///< lanes, each of which adds to a sum of its own
  const char* instructions = "";
};

/// T is float, double, int32_t or int64_t. Stored is T or, of sums of products in float, bf16 or f16; other pairs have
/// no kernels.
template <class T, class Stored>
const DotKernels<T, Stored>& dot_kernels(Combination combination);

}  // namespace einrel::contraction
