// Sums of exponentials, of accumulate_ops.h. Included by fused_loops.cpp once for each instruction set.

#include <cmath>
#include <cstdint>

#include "kernel/elementwise/accumulate_ops.h"
#include "kernel/elementwise/vector_math.h"

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

constexpr LogSumExp all_log_sum_exp{{add<float>, add<double>, add<std::int64_t>},
                                    {sum<float>, sum<double>, sum<std::int64_t>}};

}  // namespace
}  // namespace einrel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
