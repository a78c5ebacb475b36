#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tensor/tensor.h"
#include "worker.h"

namespace einrel::bench {

/// One matrix of a product, as it lies in its tensor (or in its permuted copy): the distance between rows, columns,
/// and along each dimension of the batch, in elements.
struct MatrixLayout {
  std::optional<std::vector<std::size_t>> permuted;  ///< the order of the tensor's dimensions in a row-major copy
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::vector<std::int64_t> batch;
};

/// Z = A B for every index of the batch: A is m x k, B is k x n. Made by contraction.py.
struct Product {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::vector<std::int64_t> batch;  ///< extents
  bool swapped = false;             ///< A is the second operand
  MatrixLayout a;
  MatrixLayout b;
  MatrixLayout z;                   ///< its columns are neighbours
  std::vector<std::int64_t> shape;  ///< of the tensor that holds the products, before `z.permuted` reorders it
};
Product product_of(const Json& spec);

/// By gemm of OpenBLAS (gemv where m or n is 1), one call per index of the batch; operands and result that have a
/// permuted layout are copied, by oneDNN. Throws UserError for a dtype that BLAS has not.
Compute blas_product(const Product& product, const Tensor& first, const Tensor& second);

/// The contraction as nested loops over the tensors as they lie, the last loop along neighbours of the result.
struct LoopNest {
  std::vector<std::int64_t> extents;  ///< outermost first
  std::vector<std::int64_t> a;        ///< steps of the operands and the result
  std::vector<std::int64_t> b;
  std::vector<std::int64_t> z;
  std::vector<std::int64_t> shape;
};
LoopNest loop_nest_of(const Json& spec);
Compute direct_loop(const LoopNest& nest, const Tensor& a, const Tensor& b);

}  // namespace einrel::bench
