#pragma once

#include <string>
#include <variant>

#include "kernel/kernel.h"
#include "kernel/products/product.h"

namespace einrel::contraction {

/// How a product of few columns is computed with vectors along its inner positions: A is read where it lies, and so is
/// B unless its inner positions do not lie side by side.
struct DotPlan {
  Product product;
  Loop row;                       ///< of one position where there is none
  Loop inner;                     ///< of step 1 in A
  std::vector<Loop> outer_inner;  ///< the other inner loops
  std::vector<Loop> rest;         ///< batch and the other rows
  std::int64_t columns = 1;
  bool packs_b = false;

  std::int64_t row_block = 1;  ///< rows of one unit of work
  std::int64_t parts = 1;

  double seconds = 0;  ///< modelled, on one thread
};

/// The cheapest choice of loops, or why there is none.
std::variant<DotPlan, std::string> plan_dot(const Product& product);

std::int64_t own_bytes(const DotPlan& plan);
inline std::int64_t shared_bytes(const DotPlan&) { return 0; }
inline std::int64_t parts(const DotPlan& plan) { return plan.parts; }
/// Sums of runs are added in double.
inline std::int64_t additions(const DotPlan&) { return most_additions; }
PreparedKernel prepare(DotPlan plan);

/// "dot 1 column (AVX-512)"
std::string describe(const DotPlan& plan);

}  // namespace einrel::contraction
