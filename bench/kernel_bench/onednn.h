#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "tensor/tensor.h"
#include "worker.h"

namespace einrel::bench {

struct Product;

/// Computations by a primitive of oneDNN, made once; each call computes into a new row-major tensor. All throw
/// dnnl::error when oneDNN has no such primitive for the dtype on this processor.

/// Row-major copies of tensors that are laid out like `example`, their dimensions in the given order.
std::function<Tensor(const Tensor&)> onednn_permutation(const std::vector<std::size_t>& order, const Tensor& example);
Compute onednn_permute(const std::vector<std::size_t>& order, const Tensor& tensor);

/// `spec` as in cases.py: {"op": "convolution" | "softmax" | "layer_norm" | "pooling" | "reduction" | "eltwise", ...}.
Compute onednn_compute(const Json& spec, const std::vector<Tensor>& inputs);

Compute onednn_product(const Product& product, const Tensor& first, const Tensor& second);

}  // namespace einrel::bench
