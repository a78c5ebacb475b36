#include "kernel/cpu/blocks/log_sum_exp.h"

#include <tuple>

#include "kernel/cpu/blocks/vector_math.h"
#include "kernel/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/blocks/log_sum_exp.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef EINREL_LOG_SUM_EXP
#define EINREL_LOG_SUM_EXP
namespace einrel {

/// The loops for one instruction set; std::get finds one by its type.
struct LogSumExp {
  template <class V>
  using Add = void (*)(double* largest, double* scaled, const V* x, std::size_t n);
  template <class V>
  using Sum = double (*)(double largest, const V* x, std::size_t n);

  std::tuple<Add<float>, Add<double>, Add<std::int64_t>> add;
  std::tuple<Sum<float>, Sum<double>, Sum<std::int64_t>> sum;
};

}  // namespace einrel
#endif

HWY_BEFORE_NAMESPACE();
namespace einrel::HWY_NAMESPACE {
namespace {

/// -|x - largest|, where equal infinities differ by 0.
[[gnu::always_inline]] inline double distance(double x, double largest) {
  return x == largest ? 0 : -std::abs(x - largest);
}

/// Rescales to the larger argument and adds the other.
template <class V>
void add(double* __restrict largest, double* __restrict scaled, const V* __restrict x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto value = static_cast<double>(x[i]);
    const double e = exponential_below(distance(value, largest[i]));
    const bool above = value > largest[i];
    scaled[i] = (above ? scaled[i] * e : scaled[i]) + (above ? 1 : e);
    largest[i] = above ? value : largest[i];
  }
}

template <class V>
double sum(double largest, const V* x, std::size_t n) {
  constexpr std::size_t width = 32;
  double partial[width] = {};
  const std::size_t whole = n - n % width;
  for (std::size_t i = 0; i < whole; i += width) {
    for (std::size_t j = 0; j < width; ++j) {
      partial[j] += exponential_below(distance(static_cast<double>(x[i + j]), largest));
    }
  }
  for (std::size_t i = whole; i < n; ++i) {
    partial[i - whole] += exponential_below(distance(static_cast<double>(x[i]), largest));
  }
  for (std::size_t half = width / 2; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) partial[j] += partial[j + half];
  }
  return partial[0];
}

const LogSumExp& loops() {
  using I = std::int64_t;
  static constexpr LogSumExp all{{add<float>, add<double>, add<I>}, {sum<float>, sum<double>, sum<I>}};
  return all;
}

}  // namespace
}  // namespace einrel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einrel {
namespace {

HWY_EXPORT(loops);

}  // namespace

template <class V>
void add_exponentials(double* largest, double* scaled, const V* x, std::size_t n) {
  std::get<LogSumExp::Add<V>>(HWY_DYNAMIC_DISPATCH(loops)().add)(largest, scaled, x, n);
}
template void add_exponentials(double*, double*, const float*, std::size_t);
template void add_exponentials(double*, double*, const double*, std::size_t);
template void add_exponentials(double*, double*, const std::int64_t*, std::size_t);

template <class V>
double sum_exponentials(double largest, const V* x, std::size_t n) {
  return std::get<LogSumExp::Sum<V>>(HWY_DYNAMIC_DISPATCH(loops)().sum)(largest, x, n);
}
template double sum_exponentials(double, const float*, std::size_t);
template double sum_exponentials(double, const double*, std::size_t);
template double sum_exponentials(double, const std::int64_t*, std::size_t);

}  // namespace einrel
#endif
