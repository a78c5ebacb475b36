#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>

// Functions of one value without branches, for loops that the compiler vectorises. They are accurate to 4 units in the
// last place, and take infinities, NaN and results below the normal range in their stride.

// The C library has its functions once more for vectors of every width (libmvec), at most 4 units in the last place
// off; GCC calls them where it is told so. Its headers do that only under -ffast-math.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#if __GLIBC_PREREQ(2, 35)
extern "C" {
[[gnu::simd("notinbranch")]] float log1pf(float) noexcept;
[[gnu::simd("notinbranch")]] float expm1f(float) noexcept;
[[gnu::simd("notinbranch")]] float tanhf(float) noexcept;
[[gnu::simd("notinbranch")]] float erff(float) noexcept;
[[gnu::simd("notinbranch")]] float erfcf(float) noexcept;
[[gnu::simd("notinbranch")]] float sinf(float) noexcept;
[[gnu::simd("notinbranch")]] float cosf(float) noexcept;
[[gnu::simd("notinbranch")]] float powf(float, float) noexcept;
[[gnu::simd("notinbranch")]] double log1p(double) noexcept;
[[gnu::simd("notinbranch")]] double expm1(double) noexcept;
[[gnu::simd("notinbranch")]] double tanh(double) noexcept;
[[gnu::simd("notinbranch")]] double erf(double) noexcept;
[[gnu::simd("notinbranch")]] double erfc(double) noexcept;
[[gnu::simd("notinbranch")]] double sin(double) noexcept;
[[gnu::simd("notinbranch")]] double cos(double) noexcept;
[[gnu::simd("notinbranch")]] double pow(double, double) noexcept;
}
#endif
#endif

namespace einrel {

/// coefficients[0] + coefficients[1] * x + ...
template <class T, std::size_t count>
[[gnu::always_inline]] inline T polynomial(T x, const T (&coefficients)[count]) {
  T sum = coefficients[count - 1];
  for (std::size_t i = count - 1; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

template <class T>
struct MathConstants;

template <>
struct MathConstants<float> {
  using Bits = std::uint32_t;
  static constexpr float limit = 104.6F;
  static constexpr int shift = 24;
  static constexpr float power_of_shift = 0x1p24F;
  static constexpr float ln2_high = 0x1.62e4p-1F;
  static constexpr float ln2_low = 0x1.7f7d1cp-20F;
  /// (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2, to 2^-24.
  static constexpr float quotient[] = {0.499999981338F, 0.16666579127F, 0.0416678092056F, 0.00836297998132F,
                                       0.00138217349889F};
  /// (2 atanh(s) - 2 s) / s^3 as a polynomial in s^2 for |s| <= 0.1716, to 2^-27.
  static constexpr float atanh_rest[] = {0.66666685322F, 0.39988695883F, 0.29583087689F};
};

template <>
struct MathConstants<double> {
  using Bits = std::uint64_t;
  static constexpr double limit = 746.5;
  static constexpr int shift = 54;
  static constexpr double power_of_shift = 0x1p54;
  static constexpr double ln2_high = 0x1.62e42fefa38p-1;
  static constexpr double ln2_low = 0x1.ef35793c7673p-45;
  /// The same, to 2^-53.
  static constexpr double quotient[] = {0.50000000000000009844,   0.16666666666666582383,   0.041666666666625001152,
                                        0.0083333333334246511219, 0.0013888888916905181778, 0.00019841269579651232712,
                                        0.000024801521633485157,  2.7557582584261123293e-6, 2.761997850380672155e-7,
                                        2.4984409986048628261e-8};
  /// To 2^-56.
  static constexpr double atanh_rest[] = {0.66666666666666697486, 0.39999999999897887842, 0.28571428626651406864,
                                          0.22222211031749324461, 0.18182896207631686,    0.15331497764506818416,
                                          0.14619096992012278532};
};

/// exp(x + small) for |x| <= limit and |small| <= 0.1. With x = n * ln(2) + r it is exp(r) * 2^(n + shift) * 2^-shift,
/// where the shift keeps the first power of 2 within the normal range. `rounding` is rounding_sum<T>(shift), `unshift`
/// 2^-shift, or 0 for what is less than every number: products that leave the range of numbers take some processors a
/// hundred cycles, a product with 0 does not.
template <class T>
[[gnu::always_inline]] inline T shifted_exponential(T x, T small, T rounding, T unshift) {
  using C = MathConstants<T>;
  const T rounded = x * std::numbers::log2e_v<T> + rounding;
  const T n = rounded - rounding;
  const T r = (x - n * C::ln2_high - n * C::ln2_low) + small;
  const T exponential_of_r = 1 + r * (1 + r * polynomial(r, C::quotient));
  const auto bits = std::bit_cast<typename C::Bits>(rounded) << (std::numeric_limits<T>::digits - 1);
  return exponential_of_r * std::bit_cast<T>(bits) * unshift;
}

/// A number so large that adding it to n rounds n to an integer, with n + shift + the bias of exponents in the lowest
/// bits of the sum.
template <class T>
constexpr T rounding_sum(int shift) {
  return T{1.5} / std::numeric_limits<T>::epsilon() + static_cast<T>(std::numeric_limits<T>::max_exponent - 1 + shift);
}

/// exp(x + small) for x <= 0 and |small| up to 0.1.
template <class T>
[[gnu::always_inline]] inline T exponential_below(T x, T small = -T{0}) {
  using C = MathConstants<T>;
  const bool is_nothing = x < -C::limit;
  x = is_nothing ? -C::limit : x;
  return shifted_exponential<T>(x, small, rounding_sum<T>(C::shift), is_nothing ? 0 : 1 / C::power_of_shift);
}

/// `negative` or `positive` as x is.
template <class T>
[[gnu::always_inline]] inline T by_sign(T x, T negative, T positive) {
  using Bits = typename MathConstants<T>::Bits;
  const Bits all_if_negative = Bits{0} - (std::bit_cast<Bits>(x) >> (sizeof(T) * 8 - 1));
  const Bits difference = std::bit_cast<Bits>(negative) ^ std::bit_cast<Bits>(positive);
  return std::bit_cast<T>(std::bit_cast<Bits>(positive) ^ (all_if_negative & difference));
}

template <class T>
[[gnu::always_inline]] inline T exponential(T x) {
  using C = MathConstants<T>;
  const T unshift = x < -C::limit ? 0 : by_sign(x, 1 / C::power_of_shift, C::power_of_shift);
  x = std::abs(x) > C::limit ? std::copysign(C::limit, x) : x;
  return shifted_exponential<T>(x, -T{0}, by_sign(x, rounding_sum<T>(C::shift), rounding_sum<T>(-C::shift)), unshift);
}

/// log(x) = n * ln(2) + log(1 + f) with x = 2^n * (1 + f) and 1 + f from sqrt(1/2) to sqrt(2). With s = f / (2 + f),
/// log(1 + f) is 2 atanh(s), which is taken from its leading part f - f^2 / 2.
template <class T>
[[gnu::always_inline]] inline T logarithm(T x) {
  using C = MathConstants<T>;
  using Bits = typename C::Bits;
  using Limits = std::numeric_limits<T>;
  const T normal = x < Limits::min() ? x * C::power_of_shift : x;
  // Biased exponents count from sqrt(1/2) here. Behind those of `counting` they are integers that T can subtract.
  constexpr T one = 1;
  constexpr T counting = 1 / Limits::epsilon();
  const Bits bits = std::bit_cast<Bits>(normal);
  const Bits biased =
      (bits + (std::bit_cast<Bits>(one) - std::bit_cast<Bits>(std::numbers::sqrt2_v<T> / 2))) >> (Limits::digits - 1);
  const T f = std::bit_cast<T>(bits - (biased << (Limits::digits - 1)) + std::bit_cast<Bits>(one)) - 1;
  const T exponent = std::bit_cast<T>(biased | std::bit_cast<Bits>(counting)) -
                     (counting + (Limits::max_exponent - 1) + (x < Limits::min() ? C::shift : 0));
  const T s = f / (2 + f);
  const T rest = s * s * polynomial(s * s, C::atanh_rest);
  const T half_square = f * f * T{0.5};
  const T small = half_square - (s * (half_square + rest) + exponent * C::ln2_low);
  const T value = exponent * C::ln2_high - (small - f);
  const T outside = x == 0 ? -Limits::infinity() : x > 0 ? x : Limits::quiet_NaN();
  return x > 0 && x <= Limits::max() ? value : outside;
}

/// a to the power b. libmvec leaves negative numbers to a scalar function, 10 times slower; so it is given |a|.
template <class T>
[[gnu::always_inline]] inline T power(T a, T b) {
  const T magnitude = std::pow(std::abs(a), b);
  const bool whole = std::floor(b) == b;
  const bool odd = whole & (std::floor(b * T{0.5}) != b * T{0.5});
  const bool undefined = (a < 0) & (a >= -std::numeric_limits<T>::max()) & !whole;
  const T with_sign = odd ? std::copysign(magnitude, a) : magnitude;
  return undefined ? std::numeric_limits<T>::quiet_NaN() : with_sign;
}

/// x times the share P(x) of a standard normal distribution below x. With t = |x| it is max(x, 0) - t * P(-t), and
/// P(-t) is exp(-t^2 / 2) * h / (t + a), where h is a polynomial in (t - a) / (t + a).
[[gnu::always_inline]] inline float gelu(float x) {
  using C = MathConstants<float>;
  static constexpr float h[] = {0.7066566599F,     -0.4336920123F,   0.131986979F,    0.009235875054F,
                                -0.01638618844F,   -0.001600827787F, 0.002523944095F, 0.0006844140862F,
                                -0.0003116362949F, -0.0001577101238F};
  constexpr float a = 2.5F;
  constexpr float limit = 14.4609375F;  // t * P(-t) rounds to 0
  const float t = std::abs(x) > limit ? limit : std::abs(x);
  // t^2 in two parts: the square of 12 leading bits is exact.
  const float high = std::bit_cast<float>(std::bit_cast<std::int32_t>(t) & ~0xFFF);
  const float half = high * -0.5F;
  const float e = shifted_exponential<float>(half * high, (t - high) * (t * -0.5F + half),
                                             rounding_sum<float>(C::shift), 1 / C::power_of_shift);
  const float u = 1 / (t + a);
  const float share = e * (u * polynomial((t - a) * u, h));
  return (x < 0 ? 0 : x) - t * share;
}

/// The same in double, from erfc; below 0 its error grows with x^2, as erfc magnifies that of its argument.
[[gnu::always_inline]] inline double gelu(double x) {
  const double value = x / 2 * std::erfc(-x / std::numbers::sqrt2);
  return x == -std::numeric_limits<double>::infinity() ? 0 : value;
}

/// 1 / (1 + exp(-x)).
template <class T>
[[gnu::always_inline]] inline T sigmoid(T x) {
  const T e = exponential_below(-std::abs(x));
  return (x >= 0 ? 1 : e) / (1 + e);
}

/// x * sigmoid(x); 0 at -infinity.
template <class T>
[[gnu::always_inline]] inline T silu(T x) {
  const T least = -std::numeric_limits<T>::max();
  return (x < least ? least : x) * sigmoid(x);
}

}  // namespace einrel
