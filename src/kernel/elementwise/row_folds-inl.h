// Sums, extremes and searches of one row: those of row_folds.h, and what softmax_rows-inl.h makes its rows of. Included
// by exact_loops.cpp once for each instruction set.

#include <cstddef>
#include <limits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernel/elementwise/row_folds.h"
#include "machine/processor.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Real = hn::ScalableTag<double>;

HWY_INLINE hn::Vec<Real> load_as_real(Real, const double* from) { return hn::LoadU(Real(), from); }
HWY_INLINE hn::Vec<Real> load_as_real(Real d, const float* from) {
  const hn::Rebind<float, Real> half;
  return hn::PromoteTo(d, hn::LoadU(half, from));
}

/// Asks for what lies so far behind a place: a row ends too soon for the processor to foresee the next one.
template <std::size_t values, class T>
HWY_INLINE void ask_ahead(const T* from) {
  constexpr std::size_t distance = nominal_processor.fetch_ahead;
  constexpr std::size_t line = nominal_processor.line_bytes;
  for (std::size_t at = 0; at < values * sizeof(T); at += line) {
    hwy::Prefetch(reinterpret_cast<const char*>(from) + distance + at);
  }
}

/// A sum in double under way, 32 values at a time: as many sums on every instruction set, so that all come to the same.
class RowSum {
 public:
  static constexpr std::size_t width = 32;

  HWY_INLINE RowSum() {
    for (auto& sum : sums_) sum = hn::Zero(Real());
  }
  template <class T>
  HWY_INLINE void add(const T* values) {
    for (std::size_t v = 0; v < vectors; ++v) {
      sums_[v] = hn::Add(sums_[v], load_as_real(Real(), values + v * vector));
    }
  }
  /// The sum, and then fewer than 32 values more.
  template <class T>
  HWY_INLINE double finish(const T* rest, std::size_t count) {
    for (std::size_t half = vectors / 2; half > 0; half /= 2) {
      for (std::size_t v = 0; v < half; ++v) sums_[v] = hn::Add(sums_[v], sums_[v + half]);
    }
    double sum = hn::GetLane(hn::SumOfLanes(Real(), sums_[0]));
    for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(rest[i]);
    return sum;
  }

 private:
  static constexpr std::size_t vector = hn::MaxLanes(Real());
  static constexpr std::size_t vectors = width / vector;
  hn::Vec<Real> sums_[vectors];
};

template <class T>
HWY_INLINE T scalar_extreme(bool largest, T held, T value) {
  if (held != held || value != value) return held != held ? held : value;
  return (largest ? value > held : value < held) ? value : held;
}

template <bool largest, bool keeps_nan, bool asks, std::size_t vectors, class T>
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
    if constexpr (asks && vectors > 1) ask_ahead<vectors * vector>(values + i);
    for (std::size_t v = 0; v < vectors; ++v) {
      const auto value = hn::LoadU(d, values + i + v * vector);
      if constexpr (keeps_nan) nan = hn::Or(nan, hn::IsNaN(value));
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

/// The largest, or the least, of `held` and a row. A NaN stays, or, without keeps_nan, anything may come of it. `asks`
/// for what lies ahead, unless it is in the cache.
template <bool largest, bool keeps_nan = true, bool asks = true, class T>
HWY_INLINE T extreme_of_row(const T* row, std::size_t length, T held) {
  constexpr std::size_t lanes = hn::MaxLanes(hn::ScalableTag<T>());
  return length >= 4 * lanes ? extreme_of<largest, keeps_nan, asks, 4>(row, length, held)
                             : extreme_of<largest, keeps_nan, asks, 1>(row, length, held);
}

template <bool nan, class T>
HWY_INLINE std::size_t first_of_row(const T* values, std::size_t length, T wanted) {
  const hn::ScalableTag<T> d;
  constexpr std::size_t vector = hn::MaxLanes(d);
  constexpr std::size_t together = 4 * vector;
  const auto is_wanted = [&, all = hn::Set(d, wanted)](std::size_t at) {
    const auto value = hn::LoadU(d, values + at);
    if constexpr (nan) {
      return hn::IsNaN(value);
    } else {
      return hn::Eq(value, all);
    }
  };
  std::size_t i = 0;
  for (; i + together <= length; i += together) {
    const auto first = hn::Or(is_wanted(i), is_wanted(i + vector));
    const auto second = hn::Or(is_wanted(i + 2 * vector), is_wanted(i + 3 * vector));
    if (!hn::AllFalse(d, hn::Or(first, second))) break;
  }
  while (i < length && !(nan ? values[i] != values[i] : values[i] == wanted)) ++i;
  return i;
}

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

template <class T>
std::size_t first_position_of(const T* values, std::size_t length, T wanted) {
  return wanted != wanted ? first_of_row<true>(values, length, wanted) : first_of_row<false>(values, length, wanted);
}
constexpr RowFolds all_row_folds{{add_sums_of<float>, add_sums_of<double>},
                                 {take_extremes_of<float>, take_extremes_of<double>},
                                 {first_position_of<float>, first_position_of<double>}};

}  // namespace
}  // namespace einrel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
