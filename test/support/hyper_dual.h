#pragma once

#include <cmath>
#include <numbers>

namespace einrel::test {

/// A number that is moved in two directions: x + a e + b f + c e f with e^2 = f^2 = 0. What a function makes of it has
/// its derivatives along both, and the second one, to rounding. Where functions have none, or two, these are what
/// docs/language.md says.
struct HyperDual {
  double x = 0;
  double a = 0;
  double b = 0;
  double c = 0;

  /// Of a function whose value, slope and curvature at x are known.
  HyperDual through(double value, double slope, double curvature) const {
    return {value, slope * a, slope * b, slope * c + curvature * a * b};
  }
  HyperDual operator*(double k) const { return {k * x, k * a, k * b, k * c}; }
};

inline HyperDual operator+(const HyperDual& u, const HyperDual& v) {
  return {u.x + v.x, u.a + v.a, u.b + v.b, u.c + v.c};
}
inline HyperDual operator-(const HyperDual& u, const HyperDual& v) { return u + v * -1; }
inline HyperDual operator*(const HyperDual& u, const HyperDual& v) {
  return {u.x * v.x, u.a * v.x + u.x * v.a, u.b * v.x + u.x * v.b, u.c * v.x + u.a * v.b + u.b * v.a + u.x * v.c};
}
inline HyperDual operator/(const HyperDual& u, const HyperDual& v) {
  const HyperDual inverse = v.through(1 / v.x, -1 / v.x / v.x, 2 / v.x / v.x / v.x);
  HyperDual quotient = u * inverse;
  quotient.x = u.x / v.x;
  return quotient;
}

inline HyperDual exp(const HyperDual& u) { return u.through(std::exp(u.x), std::exp(u.x), std::exp(u.x)); }
inline HyperDual log(const HyperDual& u) { return u.through(std::log(u.x), 1 / u.x, -1 / u.x / u.x); }
inline HyperDual power(const HyperDual& u, double p) {
  return u.through(std::pow(u.x, p), p * std::pow(u.x, p - 1), p * (p - 1) * std::pow(u.x, p - 2));
}
inline HyperDual sqrt(const HyperDual& u) {
  const double root = std::sqrt(u.x);
  return u.through(root, 0.5 / root, -0.25 / root / u.x);
}
inline HyperDual rsqrt(const HyperDual& u) {
  const double inverse = 1 / std::sqrt(u.x);
  return u.through(inverse, -0.5 * inverse / u.x, 0.75 * inverse / u.x / u.x);
}
inline HyperDual sigmoid(const HyperDual& u) {
  const double s = 1 / (1 + std::exp(-u.x));
  return u.through(s, s * (1 - s), s * (1 - s) * (1 - 2 * s));
}
inline HyperDual tanh(const HyperDual& u) {
  const double t = std::tanh(u.x);
  return u.through(t, 1 - t * t, -2 * t * (1 - t * t));
}
inline HyperDual erf(const HyperDual& u) {
  const double slope = 2 * std::numbers::inv_sqrtpi * std::exp(-u.x * u.x);
  return u.through(std::erf(u.x), slope, -2 * u.x * slope);
}
inline HyperDual gelu(const HyperDual& u) { return u * (HyperDual{0.5} + erf(u * (1 / std::numbers::sqrt2)) * 0.5); }
inline HyperDual abs(const HyperDual& u) { return u.x > 0 ? u : u.x < 0 ? u * -1 : HyperDual{}; }
inline HyperDual relu(const HyperDual& u) { return u.x > 0 ? u : HyperDual{}; }
/// Half of each where they are equal.
inline HyperDual larger(const HyperDual& u, const HyperDual& v) {
  if (u.x == v.x) return {u.x, (u.a + v.a) / 2, (u.b + v.b) / 2, (u.c + v.c) / 2};
  return u.x > v.x ? u : v;
}

}  // namespace einrel::test
