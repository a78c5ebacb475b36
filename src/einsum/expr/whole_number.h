#pragma once

#include <cstdint>
#include <limits>

namespace einrel {

/// An integer that is computed with modulo 2^64, so that the rows of functions.def hold for it as they do for floats.
struct WholeNumber {
  std::int64_t value = 0;

  constexpr WholeNumber(std::int64_t number) : value(number) {}  // NOLINT(google-explicit-constructor): x > 0 ? x : 0

  friend constexpr WholeNumber operator+(WholeNumber a, WholeNumber b) { return wrapped(bits(a) + bits(b)); }
  friend constexpr WholeNumber operator-(WholeNumber a, WholeNumber b) { return wrapped(bits(a) - bits(b)); }
  friend constexpr WholeNumber operator*(WholeNumber a, WholeNumber b) { return wrapped(bits(a) * bits(b)); }
  friend constexpr WholeNumber operator-(WholeNumber a) { return wrapped(0 - bits(a)); }

  friend constexpr bool operator<(WholeNumber a, WholeNumber b) { return a.value < b.value; }
  friend constexpr bool operator<=(WholeNumber a, WholeNumber b) { return a.value <= b.value; }
  friend constexpr bool operator>(WholeNumber a, WholeNumber b) { return a.value > b.value; }
  friend constexpr bool operator>=(WholeNumber a, WholeNumber b) { return a.value >= b.value; }
  friend constexpr bool operator==(WholeNumber a, WholeNumber b) { return a.value == b.value; }
  friend constexpr bool operator!=(WholeNumber a, WholeNumber b) { return a.value != b.value; }

  friend constexpr WholeNumber operator|(WholeNumber a, WholeNumber b) { return a.value | b.value; }
  friend constexpr WholeNumber operator&(WholeNumber a, WholeNumber b) { return a.value & b.value; }

  friend constexpr WholeNumber abs(WholeNumber a) { return a < 0 ? -a : a; }
  friend constexpr WholeNumber floor(WholeNumber a) { return a; }
  /// By squaring: O(log exponent) multiplications. With a negative exponent 0, unless the base is 1 or -1.
  friend constexpr WholeNumber power(WholeNumber base, WholeNumber exponent) {
    if (exponent < 0 && base == -1) return exponent.value % 2 == 0 ? 1 : -1;
    if (exponent < 0) return base == 1 ? 1 : 0;
    WholeNumber result = 1;
    for (std::uint64_t left = bits(exponent); left != 0; left >>= 1U, base = base * base) {
      if ((left & 1U) != 0) result = result * base;
    }
    return result;
  }

 private:
  static constexpr std::uint64_t bits(WholeNumber a) { return static_cast<std::uint64_t>(a.value); }
  static constexpr WholeNumber wrapped(std::uint64_t bits) { return static_cast<std::int64_t>(bits); }
};

/// a || b, but both are looked at: without a branch, so that loops of it become vectors.
constexpr bool either(bool a, bool b) { return (static_cast<unsigned>(a) | static_cast<unsigned>(b)) != 0; }

/// Below and above all others, or equal to them.
template <class T>
constexpr T lowest() {
  return -std::numeric_limits<T>::infinity();
}
template <class T>
constexpr T highest() {
  return std::numeric_limits<T>::infinity();
}
template <>
constexpr WholeNumber lowest() {
  return std::numeric_limits<std::int64_t>::min();
}
template <>
constexpr WholeNumber highest() {
  return std::numeric_limits<std::int64_t>::max();
}

}  // namespace einrel
