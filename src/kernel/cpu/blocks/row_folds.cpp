#include "kernel/cpu/blocks/row_folds.h"

#include <cstdint>
#include <limits>

#include "kernel/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/blocks/row_folds.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Long rows often come from memory, where the processor stops looking ahead at the end of every page.
template <class T>
HWY_INLINE void look_ahead(const T* values, std::size_t count) {
  constexpr std::size_t distance = 2048;
  for (std::size_t i = 0; i < count; i += 64 / sizeof(T)) hwy::Prefetch(values + distance / sizeof(T) + i);
}

using Real = hn::ScalableTag<double>;

HWY_INLINE hn::Vec<Real> load_as_real(Real, const double* from) { return hn::LoadU(Real(), from); }
HWY_INLINE hn::Vec<Real> load_as_real(Real d, const float* from) {
  const hn::Rebind<float, Real> half;
  return hn::PromoteTo(d, hn::LoadU(half, from));
}

/// As many sums under way on every instruction set, so that all come to the same.
template <class T>
HWY_INLINE double sum_of(const T* values, std::size_t length) {
  constexpr std::size_t width = 32;
  const Real d;
  constexpr std::size_t vector = hn::MaxLanes(d);
  constexpr std::size_t vectors = width / vector;
  hn::Vec<Real> sums[vectors];
  for (auto& sum : sums) sum = hn::Zero(d);
  std::size_t i = 0;
  for (; i + width <= length; i += width) {
    look_ahead(values + i, width);
    for (std::size_t v = 0; v < vectors; ++v) {
      sums[v] = hn::Add(sums[v], load_as_real(d, values + i + v * vector));
    }
  }
  for (std::size_t half = vectors / 2; half > 0; half /= 2) {
    for (std::size_t v = 0; v < half; ++v) sums[v] = hn::Add(sums[v], sums[v + half]);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, sums[0]));
  for (; i < length; ++i) sum += static_cast<double>(values[i]);
  return sum;
}

template <class T>
void add_sums_of(const T* values, std::size_t rows, std::size_t length, double* held) {
  for (std::size_t r = 0; r < rows; ++r) held[r] += sum_of(values + r * length, length);
}

template <class T>
HWY_INLINE T scalar_extreme(bool largest, T held, T value) {
  if (held != held || value != value) return held != held ? held : value;
  return (largest ? value > held : value < held) ? value : held;
}

template <bool largest, std::size_t vectors, class T>
HWY_INLINE T extreme_of(const T* values, std::size_t length, T held) {
  const hn::ScalableTag<T> d;
  constexpr std::size_t vector = hn::MaxLanes(d);
  const auto better = [](auto a, auto b) {
    if constexpr (largest) {
      return hn::Max(a, b);
    } else {
      return hn::Min(a, b);
    }
  };
  hn::Vec<decltype(d)> extremes[vectors];
  for (auto& extreme : extremes) extreme = hn::Set(d, held);
  auto nan = hn::IsNaN(extremes[0]);
  std::size_t i = 0;
  for (; i + vectors * vector <= length; i += vectors * vector) {
    look_ahead(values + i, vectors * vector);
    for (std::size_t v = 0; v < vectors; ++v) {
      const auto value = hn::LoadU(d, values + i + v * vector);
      nan = hn::Or(nan, hn::IsNaN(value));
      extremes[v] = better(extremes[v], value);
    }
  }
  if (!hn::AllFalse(d, nan)) return std::numeric_limits<T>::quiet_NaN();
  for (std::size_t v = 1; v < vectors; ++v) extremes[0] = better(extremes[0], extremes[v]);
  if constexpr (largest) {
    held = hn::GetLane(hn::MaxOfLanes(d, extremes[0]));
  } else {
    held = hn::GetLane(hn::MinOfLanes(d, extremes[0]));
  }
  for (; i < length; ++i) held = scalar_extreme(largest, held, values[i]);
  return held;
}

template <bool largest, class T>
HWY_INLINE void take_extremes(const T* values, std::size_t rows, std::size_t length, T* held) {
  constexpr std::size_t lanes = hn::MaxLanes(hn::ScalableTag<T>());
  for (std::size_t r = 0; r < rows; ++r) {
    const T* const row = values + r * length;
    held[r] = length >= 4 * lanes ? extreme_of<largest, 4>(row, length, held[r])
                                  : extreme_of<largest, 1>(row, length, held[r]);
  }
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

}  // namespace einrel
#endif
