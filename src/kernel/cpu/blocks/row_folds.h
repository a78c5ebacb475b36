#pragma once

#include <cstddef>

namespace einrel {

// Rows of floats that lie one after another, each reduced to one number. The order of adding depends on the length of
// the rows alone.

/// held[r] + the sum of row r, in double.
void add_row_sums(const float* values, std::size_t rows, std::size_t length, double* held);
void add_row_sums(const double* values, std::size_t rows, std::size_t length, double* held);

/// The largest, or the least, of held[r] and row r. A NaN stays.
void take_row_extremes(bool largest, const float* values, std::size_t rows, std::size_t length, float* held);
void take_row_extremes(bool largest, const double* values, std::size_t rows, std::size_t length, double* held);

/// Where `wanted` first stands among `length` values, a NaN being any NaN; `length` if it does not.
std::size_t first_in_row(const float* values, std::size_t length, float wanted);
std::size_t first_in_row(const double* values, std::size_t length, double wanted);

}  // namespace einrel
