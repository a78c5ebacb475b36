#pragma once

#include <array>
#include <cmath>
#include <cstddef>

namespace einrel::test {

/// A function of one number by its Taylor series there: f(x) + f'(x) h + f''(x) / 2 h^2 + ...
class Jet {
 public:
  static constexpr std::size_t terms = 10;

  static Jet number(double value) {
    Jet jet;
    jet.c_[0] = value;
    return jet;
  }
  static Jet variable(double x) {
    Jet jet = number(x);
    jet.c_[1] = 1;
    return jet;
  }

  double value() const { return c_[0]; }
  /// Its derivative, with a term less that is right.
  Jet slope() const {
    Jet jet;
    for (std::size_t n = 0; n + 1 < terms; ++n) jet.c_[n] = static_cast<double>(n + 1) * c_[n + 1];
    return jet;
  }

  friend Jet operator+(const Jet& a, const Jet& b) {
    Jet jet;
    for (std::size_t n = 0; n < terms; ++n) jet.c_[n] = a.c_[n] + b.c_[n];
    return jet;
  }
  friend Jet operator*(const Jet& a, const Jet& b) {
    Jet jet;
    for (std::size_t n = 0; n < terms; ++n) {
      for (std::size_t m = 0; m <= n; ++m) jet.c_[n] += a.c_[m] * b.c_[n - m];
    }
    return jet;
  }
  friend Jet operator/(const Jet& a, const Jet& b) {
    Jet jet;
    for (std::size_t n = 0; n < terms; ++n) {
      double rest = a.c_[n];
      for (std::size_t m = 0; m < n; ++m) rest -= jet.c_[m] * b.c_[n - m];
      jet.c_[n] = rest / b.c_[0];
    }
    return jet;
  }
  friend Jet exp(const Jet& a) {
    Jet jet = number(std::exp(a.c_[0]));
    for (std::size_t n = 1; n < terms; ++n) jet.c_[n] = integrated(a, jet, n);
    return jet;
  }
  friend Jet sin(const Jet& a) {
    Jet sine = number(std::sin(a.c_[0]));
    Jet cosine = number(std::cos(a.c_[0]));
    for (std::size_t n = 1; n < terms; ++n) {
      sine.c_[n] = integrated(a, cosine, n);
      cosine.c_[n] = -integrated(a, sine, n);
    }
    return sine;
  }

 private:
  /// Term n of the integral of a' * b, where terms of b below n are known.
  static double integrated(const Jet& a, const Jet& b, std::size_t n) {
    double sum = 0;
    for (std::size_t m = 1; m <= n; ++m) sum += static_cast<double>(m) * a.c_[m] * b.c_[n - m];
    return sum / static_cast<double>(n);
  }

  std::array<double, terms> c_{};
};

}  // namespace einrel::test
