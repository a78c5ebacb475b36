#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace einrel::contraction {

/// One tile of a sum of products, Z[r, l] = sum over p of A[r, p] * B[p, l], whose rows are read where they lie: the
/// same element may belong to many rows and inner positions.
template <class T>
struct WindowTile {
  const T* a = nullptr;  ///< A[r, p] at a[r * a_row + a_inner[p]]
  std::int64_t a_row = 0;
  const std::int64_t* a_inner = nullptr;
  const T* b = nullptr;  ///< B[p, l] at b[p * lanes of the kernel + l]
  std::int64_t inner = 0;
  T* z = nullptr;  ///< Z[r, l] at z[r * lanes of the kernel + l]
  T scale = 1;
  bool accumulate = false;  ///< Z += the sums, instead of Z = the sums
};

template <class T>
using WindowFunction = void (*)(const WindowTile<T>&);

inline constexpr std::size_t most_window_rows = 14;

/// The kernels for one element type, float or double, on this processor.
template <class T>
struct WindowKernels {
  std::int64_t rows = 0;    ///< of the largest kernel
  std::int64_t vector = 0;  ///< lanes of one vector
  /// By rows - 1 and vectors - 1.
  std::array<std::array<WindowFunction<T>, 2>, most_window_rows> functions{};
  const char* instructions = "";
};

template <class T>
const WindowKernels<T>& window_kernels();

}  // namespace einrel::contraction
