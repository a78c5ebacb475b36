#pragma once

#include <cstddef>
#include <cstdint>

namespace einrel {

/// Rows that lie evenly, in elements.
struct SoftmaxRows {
  std::size_t rows = 1;
  std::size_t length = 1;  ///< of a row; its elements lie side by side
  std::int64_t from_step = 0;
  std::int64_t to_step = 0;
  std::size_t block = 1;     ///< sums are taken of so many values at a time, and then added up
  bool streams = false;      ///< around the caches
  bool has_nothing = false;  ///< a row of nothing but -inf gives 0, not NaN
};

/// Elements of workspace for rows of this length.
inline std::size_t softmax_workspace(std::size_t length) { return 2 * ((length + 15) / 16 * 16); }

/// to[r][i] = e[i] / s with e[i] = exp(from[r][i] - the largest of row r), s their sum, taken in double and rounded
/// once: the bits of the four vertices by themselves. Each row is read from memory once, while the row before it is
/// computed, and written once, while the row behind it is.
void softmax_rows(const SoftmaxRows& shape, const float* from, float* to, float* workspace);
void softmax_rows(const SoftmaxRows& shape, const double* from, double* to, double* workspace);

}  // namespace einrel
