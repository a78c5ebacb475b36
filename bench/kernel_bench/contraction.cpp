#include "contraction.h"

#include <cblas.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "onednn.h"

namespace einrel::bench {
namespace {

MatrixLayout layout_of(const Json& spec) {
  MatrixLayout layout{{}, spec.at("row"), spec.at("column"), spec.at("batch")};
  if (!spec.at("permuted").is_null()) layout.permuted = spec.at("permuted").get<std::vector<std::size_t>>();
  return layout;
}

blasint number(std::int64_t value) { return static_cast<blasint>(value); }

/// How BLAS is told of a matrix: transposed when its rows are neighbours.
CBLAS_TRANSPOSE transpose(const MatrixLayout& matrix) { return matrix.column == 1 ? CblasNoTrans : CblasTrans; }
blasint leading(const MatrixLayout& matrix) { return number(matrix.column == 1 ? matrix.row : matrix.column); }

void gemm(const Product& p, const float* a, const float* b, float* z) {
  cblas_sgemm(CblasRowMajor, transpose(p.a), transpose(p.b), number(p.m), number(p.n), number(p.k), 1, a, leading(p.a),
              b, leading(p.b), 0, z, number(p.z.row));
}
void gemm(const Product& p, const double* a, const double* b, double* z) {
  cblas_dgemm(CblasRowMajor, transpose(p.a), transpose(p.b), number(p.m), number(p.n), number(p.k), 1, a, leading(p.a),
              b, leading(p.b), 0, z, number(p.z.row));
}

/// y = matrix * x for a rows x columns matrix; steps in elements.
template <class T, class Gemv>
void matrix_vector(Gemv gemv, const MatrixLayout& matrix, std::int64_t rows, std::int64_t columns, const T* data,
                   const T* x, std::int64_t x_step, T* y, std::int64_t y_step) {
  const bool as_it_lies = matrix.column == 1;
  gemv(CblasRowMajor, transpose(matrix), number(as_it_lies ? rows : columns), number(as_it_lies ? columns : rows), 1,
       data, leading(matrix), x, number(x_step), 0, y, number(y_step));
}

template <class T, class Gemv>
void product_with_vector(Gemv gemv, const Product& p, const T* a, const T* b, T* z) {
  if (p.n == 1) {
    matrix_vector(gemv, p.a, p.m, p.k, a, b, p.b.row, z, p.z.row);
  } else {
    const MatrixLayout transposed{{}, p.b.column, p.b.row, {}};
    matrix_vector(gemv, transposed, p.n, p.k, b, a, p.a.column, z, p.z.column);
  }
}

void one_product(const Product& p, const float* a, const float* b, float* z) {
  if (p.m == 1 || p.n == 1) return product_with_vector(cblas_sgemv, p, a, b, z);
  gemm(p, a, b, z);
}
void one_product(const Product& p, const double* a, const double* b, double* z) {
  if (p.m == 1 || p.n == 1) return product_with_vector(cblas_dgemv, p, a, b, z);
  gemm(p, a, b, z);
}

template <class T>
void all_products(const Product& p, const Tensor& a, const Tensor& b, Tensor& z) {
  const auto* const a_data = reinterpret_cast<const T*>(a.data());
  const auto* const b_data = reinterpret_cast<const T*>(b.data());
  auto* const z_data = reinterpret_cast<T*>(z.mutable_data());
  std::int64_t count = 1;
  for (const std::int64_t extent : p.batch) count *= extent;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i;
    std::int64_t a_offset = 0;
    std::int64_t b_offset = 0;
    std::int64_t z_offset = 0;
    for (std::size_t d = p.batch.size(); d-- > 0; rest /= p.batch[d]) {
      const std::int64_t at = rest % p.batch[d];
      a_offset += at * p.a.batch[d];
      b_offset += at * p.b.batch[d];
      z_offset += at * p.z.batch[d];
    }
    one_product(p, a_data + a_offset, b_data + b_offset, z_data + z_offset);
  }
}

/// The tensor itself, or what copies it into the order of the layout.
Compute arranged(const MatrixLayout& layout, const Tensor& tensor) {
  if (!layout.permuted) return [tensor] { return tensor; };
  return onednn_permute(*layout.permuted, tensor);
}

template <class T>
Tensor loops(const LoopNest& nest, const Tensor& a_tensor, const Tensor& b_tensor) {
  Tensor result(a_tensor.dtype(), make_shape(nest.shape));
  const auto* a = reinterpret_cast<const T*>(a_tensor.data());
  const auto* b = reinterpret_cast<const T*>(b_tensor.data());
  auto* z = reinterpret_cast<T*>(result.mutable_data());
  std::fill_n(z, result.count(), T{0});
  const std::size_t last = nest.extents.size() - 1;
  const std::int64_t length = nest.extents[last];
  const std::int64_t a_step = nest.a[last];
  const std::int64_t b_step = nest.b[last];
  std::vector<std::int64_t> at(last, 0);
  while (true) {
    // Apart, so that the compiler knows the steps and vectorises.
    if (a_step == 1 && b_step == 0) {
      for (std::int64_t i = 0; i < length; ++i) z[i] += a[i] * *b;
    } else if (a_step == 0 && b_step == 1) {
      for (std::int64_t i = 0; i < length; ++i) z[i] += *a * b[i];
    } else {
      for (std::int64_t i = 0; i < length; ++i) z[i] += a[i * a_step] * b[i * b_step];
    }
    std::size_t d = last;
    for (; d > 0; --d) {
      const std::size_t loop = d - 1;
      const bool ends = ++at[loop] == nest.extents[loop];
      const std::int64_t steps = ends ? 1 - nest.extents[loop] : 1;
      if (ends) at[loop] = 0;
      a += steps * nest.a[loop];
      b += steps * nest.b[loop];
      z += steps * nest.z[loop];
      if (!ends) break;
    }
    if (d == 0) return result;
  }
}

template <class Work>
Compute for_float_type(DType dtype, Work work) {
  if (dtype == DType::f32) return work.template operator()<float>();
  if (dtype == DType::f64) return work.template operator()<double>();
  throw UserError("BLAS has only f32 and f64");
}

}  // namespace

Product product_of(const Json& spec) {
  return {spec.at("m"),
          spec.at("n"),
          spec.at("k"),
          spec.at("batch"),
          spec.at("swapped"),
          layout_of(spec.at("a")),
          layout_of(spec.at("b")),
          layout_of(spec.at("z")),
          spec.at("shape")};
}

LoopNest loop_nest_of(const Json& spec) {
  return {spec.at("extents"), spec.at("a"), spec.at("b"), spec.at("z"), spec.at("shape")};
}

Compute blas_product(const Product& p, const Tensor& first, const Tensor& second) {
  const Compute a = arranged(p.a, p.swapped ? second : first);
  const Compute b = arranged(p.b, p.swapped ? first : second);
  const Tensor products(first.dtype(), make_shape(p.shape));
  return for_float_type(first.dtype(), [&]<class T>() -> Compute {
    const auto multiply = [p, a, b, dtype = first.dtype()] {
      Tensor z(dtype, make_shape(p.shape));
      all_products<T>(p, a(), b(), z);
      return z;
    };
    if (!p.z.permuted) return multiply;
    return [multiply, permute = onednn_permutation(*p.z.permuted, products)] { return permute(multiply()); };
  });
}

Compute direct_loop(const LoopNest& nest, const Tensor& a, const Tensor& b) {
  return for_float_type(a.dtype(), [&]<class T>() -> Compute { return [nest, a, b] { return loops<T>(nest, a, b); }; });
}

}  // namespace einrel::bench
