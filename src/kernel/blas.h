#pragma once

#include <cstddef>

namespace einrel {

/// Which way a matrix lies in memory: each row or each column is contiguous.
enum class Order : unsigned char { rows, columns };

/// A matrix as BLAS reads it: `leading` is the distance between neighbouring rows (or columns), in elements.
template <class T>
struct Matrix {
  const T* data = nullptr;
  Order order = Order::rows;
  std::size_t leading = 1;
};

/// No extent and no leading distance may be larger: BLAS counts in 32 bits.
inline constexpr std::size_t max_blas_extent = 0x7FFFFFFF;

/// C[m,n] += A[m,k] * B[k,n] by OpenBLAS on one thread; the rows of C are contiguous, `c_leading` elements apart.
/// Only when has_blas().
void multiply_add(std::size_t m, std::size_t n, std::size_t k, Matrix<float> a, Matrix<float> b, float* c,
                  std::size_t c_leading);
void multiply_add(std::size_t m, std::size_t n, std::size_t k, Matrix<double> a, Matrix<double> b, double* c,
                  std::size_t c_leading);

/// y[m] += A[m,k] * x[k]; the elements of x and y are `x_step` and `y_step` apart.
void multiply_add(std::size_t m, std::size_t k, Matrix<float> a, const float* x, std::size_t x_step, float* y,
                  std::size_t y_step);
void multiply_add(std::size_t m, std::size_t k, Matrix<double> a, const double* x, std::size_t x_step, double* y,
                  std::size_t y_step);

/// Whether OpenBLAS can be had. The first call loads it (about 3 ms), which is why it is no dependency of the link:
/// small programs never need it. It is set to one thread, so that results do not depend on the number of cores. While
/// it loads, no other thread may read the environment.
bool has_blas();

}  // namespace einrel
