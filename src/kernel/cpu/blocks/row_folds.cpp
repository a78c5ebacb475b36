#include "kernel/cpu/blocks/row_folds.h"

#include "kernel/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/blocks/row_folds.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernel/cpu/blocks/row_folds-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE double sum_of(const T* values, std::size_t length) {
  RowSum sum;
  std::size_t i = 0;
  for (; i + RowSum::width <= length; i += RowSum::width) {
    ask_ahead<RowSum::width>(values + i);
    sum.add(values + i);
  }
  return sum.finish(values + i, length - i);
}

template <class T>
void add_sums_of(const T* values, std::size_t rows, std::size_t length, double* held) {
  for (std::size_t r = 0; r < rows; ++r) held[r] += sum_of(values + r * length, length);
}

template <bool largest, class T>
HWY_INLINE void take_extremes(const T* values, std::size_t rows, std::size_t length, T* held) {
  for (std::size_t r = 0; r < rows; ++r) held[r] = extreme_of_row<largest>(values + r * length, length, held[r]);
}

template <class T>
void take_extremes_of(bool largest, const T* values, std::size_t rows, std::size_t length, T* held) {
  largest ? take_extremes<true>(values, rows, length, held) : take_extremes<false>(values, rows, length, held);
}

void add_sums_float(const float* values, std::size_t rows, std::size_t length, double* held) {
  add_sums_of(values, rows, length, held);
}
void add_sums_double(const double* values, std::size_t rows, std::size_t length, double* held) {
  add_sums_of(values, rows, length, held);
}
void take_extremes_float(bool largest, const float* values, std::size_t rows, std::size_t length, float* held) {
  take_extremes_of(largest, values, rows, length, held);
}
void take_extremes_double(bool largest, const double* values, std::size_t rows, std::size_t length, double* held) {
  take_extremes_of(largest, values, rows, length, held);
}

template <class T>
std::size_t first_of(const T* values, std::size_t length, T wanted) {
  return wanted != wanted ? first_of_row<true>(values, length, wanted) : first_of_row<false>(values, length, wanted);
}
std::size_t first_float(const float* values, std::size_t length, float wanted) {
  return first_of(values, length, wanted);
}
std::size_t first_double(const double* values, std::size_t length, double wanted) {
  return first_of(values, length, wanted);
}

}  // namespace
}  // namespace einrel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einrel {
namespace {

HWY_EXPORT(add_sums_float);
HWY_EXPORT(add_sums_double);
HWY_EXPORT(take_extremes_float);
HWY_EXPORT(take_extremes_double);
HWY_EXPORT(first_float);
HWY_EXPORT(first_double);

}  // namespace

void add_row_sums(const float* values, std::size_t rows, std::size_t length, double* held) {
  HWY_DYNAMIC_DISPATCH(add_sums_float)(values, rows, length, held);
}
void add_row_sums(const double* values, std::size_t rows, std::size_t length, double* held) {
  HWY_DYNAMIC_DISPATCH(add_sums_double)(values, rows, length, held);
}
void take_row_extremes(bool largest, const float* values, std::size_t rows, std::size_t length, float* held) {
  HWY_DYNAMIC_DISPATCH(take_extremes_float)(largest, values, rows, length, held);
}
void take_row_extremes(bool largest, const double* values, std::size_t rows, std::size_t length, double* held) {
  HWY_DYNAMIC_DISPATCH(take_extremes_double)(largest, values, rows, length, held);
}
std::size_t first_in_row(const float* values, std::size_t length, float wanted) {
  return HWY_DYNAMIC_DISPATCH(first_float)(values, length, wanted);
}
std::size_t first_in_row(const double* values, std::size_t length, double wanted) {
  return HWY_DYNAMIC_DISPATCH(first_double)(values, length, wanted);
}

}  // namespace einrel
#endif
