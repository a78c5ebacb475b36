#pragma once

#include <optional>
#include <vector>

#include "kernel/fusion/fusion.h"

namespace einrel {

/// Four vertices of a fusion's program that are the softmax of another one along its last dimension, with nobody else
/// reading what lies between them: largest[r] = max[j] from[r,j], exponentials[r,j] = exp(from[r,j] - largest[r]),
/// sum[r] = sum[j] exponentials[r,j], quotient[r,j] = exponentials[r,j] / sum[r], where r is any number of labels. That
/// of the language takes 0 for a largest of -inf, and 1 for a sum of 0.
struct Softmax {
  std::size_t from = 0;
  std::size_t largest = 0;
  std::size_t exponentials = 0;
  std::size_t sum = 0;
  std::size_t quotient = 0;
  bool has_nothing = false;  ///< of nothing but -inf it is 0, not NaN
};

std::vector<Softmax> find_softmaxes(const EinGraph& program);

/// Computes the quotient for as much as `to` holds, row by row (softmax_rows.h). Nothing where rows are not contiguous,
/// or so long that several of them leave the second-level cache.
struct SoftmaxOffer {
  double seconds = 0;  ///< modelled, on one thread
  PreparedKernel kernel;
};
std::optional<SoftmaxOffer> offer_softmax(const Softmax& softmax, const ArrayLayout& from, const ArrayLayout& to,
                                          bool streams);

}  // namespace einrel
