#pragma once

#include <string>
#include <variant>

#include "kernel/kernel.h"
#include "kernel/products/product.h"

namespace einrel::contraction {

/// How a sum of products is computed from operands that stay where they lie.
struct DirectPlan {
  Product product;
  bool a_by_lanes = false;  ///< A runs along the lanes, too: they are a batch
  Loop lanes;               ///< of step 1 in B and the result
  Loop row;                 ///< of one position where there is none
  Loop inner;
  std::vector<Loop> outer_inner;  ///< the other inner loops
  std::vector<Loop> rest;         ///< all others but `repeated`
  Loop repeated;                  ///< its positions are computed in one call where products are small

  /// One unit of work: so many positions of `repeated`, some of the rows and lanes, one position of the rest.
  std::int64_t repeated_block = 1;
  std::int64_t row_block = 1;
  std::int64_t lane_block = 1;
  std::int64_t inner_block = 1;  ///< of all inner positions, before the next lanes
  std::int64_t outer_block = 1;  ///< where there are outer ones, so many with all of `inner`
  std::int64_t parts = 1;
  /// A large B is read once, in whole rows, stream_inner at a time.
  bool streams = false;
  /// Operands and result are together too large for the second-level cache: what is soon needed is fetched.
  bool fetches = false;

  double seconds = 0;  ///< modelled, on one thread
};

/// The cheapest choice of loops, or why there is none.
std::variant<DirectPlan, std::string> plan_direct(const Product& product);

inline std::int64_t own_bytes(const DirectPlan&) { return 0; }
inline std::int64_t shared_bytes(const DirectPlan&) { return 0; }
inline std::int64_t parts(const DirectPlan& plan) { return plan.parts; }
/// As of packed plans.
std::int64_t additions(const DirectPlan& plan);
PreparedKernel prepare(DirectPlan plan);

/// "direct 4 rows (AVX-512)"
std::string describe(const DirectPlan& plan);

}  // namespace einrel::contraction
