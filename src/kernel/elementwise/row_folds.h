#pragma once

#include <cstddef>
#include <tuple>

namespace einrel {

// Rows of floats or doubles that lie one after another, each reduced to one number. The order of adding depends on the
// length of the rows alone.

struct RowFolds {
  template <class T>
  using AddSums = void (*)(const T* values, std::size_t rows, std::size_t length, double* held);
  template <class T>
  using TakeExtremes = void (*)(bool largest, const T* values, std::size_t rows, std::size_t length, T* held);
  template <class T>
  using First = std::size_t (*)(const T* values, std::size_t length, T wanted);

  std::tuple<AddSums<float>, AddSums<double>> add_sums;
  std::tuple<TakeExtremes<float>, TakeExtremes<double>> take_extremes;
  std::tuple<First<float>, First<double>> first;
};

/// Those for this processor.
const RowFolds& row_folds();

/// held[r] + the sum of row r, in double.
template <class T>
void add_row_sums(const T* values, std::size_t rows, std::size_t length, double* held) {
  std::get<RowFolds::AddSums<T>>(row_folds().add_sums)(values, rows, length, held);
}

/// The largest, or the least, of held[r] and row r. A NaN stays.
template <class T>
void take_row_extremes(bool largest, const T* values, std::size_t rows, std::size_t length, T* held) {
  std::get<RowFolds::TakeExtremes<T>>(row_folds().take_extremes)(largest, values, rows, length, held);
}

/// Where `wanted` first stands among `length` values, a NaN being any NaN; `length` if it does not.
template <class T>
std::size_t first_in_row(const T* values, std::size_t length, T wanted) {
  return std::get<RowFolds::First<T>>(row_folds().first)(values, length, wanted);
}

}  // namespace einrel
