#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernel/cpu/contraction/bf16_pair.h"
#include "tensor/dtype.h"

namespace einrel::contraction {

// The loops that packing spends its time in, for the instruction set of this processor.

/// Whether elements that are stored as Stored arrive as T in vectors.
template <class T, class Stored>
inline constexpr bool is_fast_pair = std::is_same_v<T, Stored> ||
                                     (std::is_same_v<T, float> &&
                                      (std::is_same_v<Stored, BFloat16> || std::is_same_v<Stored, Float16>)) ||
                                     (is_pair<T> && std::is_same_v<Stored, BFloat16>);

/// Lines that lie side by side: for each of `count` inner positions p = positions[i] and each panel q, copies `lanes`
/// elements from source[offsets[p] + q * lanes] on to `to[q * panel + p * width]` on; of pairs, to the low or high
/// halves from `to[q * panel + p / 2 * width]` on.
template <class T, class Stored>
struct LineCopy {
  const Stored* source = nullptr;
  const std::int64_t* offsets = nullptr;
  const std::int32_t* positions = nullptr;
  std::int64_t count = 0;
  std::int64_t lanes = 0;
  std::int64_t panels = 1;
  T* to = nullptr;
  std::int64_t width = 0;
  std::int64_t panel = 0;
};

/// T is float, double, int32_t or int64_t, Stored the same or, of float, bf16 or f16; or T is a pair, and Stored bf16.
template <class T, class Stored>
void copy_lines(const LineCopy<T, Stored>& copy);

/// to[p * step + l] = lines[l][p] for p below count, l below width. T as above. What lies `ahead` elements behind them
/// is fetched meanwhile.
template <class T>
void transpose_lines(const T* const* lines, std::int64_t width, std::int64_t count, T* to, std::int64_t step,
                     std::int64_t ahead = 0);

/// Stored is bf16 or f16.
template <class Stored>
void convert_line(const Stored* from, std::int64_t count, float* to);

/// The other way: rounded to nearest, ties to even.
template <class Stored>
void narrow_line(const float* from, std::int64_t count, Stored* to);

/// Bit l is set where values[l] lies outside of [low, high], for l below count; count is at most 64.
std::uint64_t outside(const std::int64_t* values, std::int64_t count, std::int64_t low, std::int64_t high);

/// Finished values on their way to lines of the result: `count` values from values[r * stride] on, each multiplied with
/// `scale`, go to `to[offsets[r]]` on for every row r, where they are added to what is there if `accumulate` says so.
template <class T>
struct LineStore {
  const T* values = nullptr;
  std::int64_t stride = 0;
  std::int64_t rows = 0;
  std::int64_t count = 0;
  T* to = nullptr;
  const std::int64_t* offsets = nullptr;
  T scale = 1;
  bool accumulate = false;
};

/// T is float or double.
template <class T>
void store_lines(const LineStore<T>& store);

/// Which values that kernels treat in their own way occur among some.
struct Specials {
  bool nan = false;
  bool plus_infinity = false;
  bool minus_infinity = false;
  bool subnormal = false;
};
/// T is float or double, of which all but subnormals are looked for, or a pair, of which only they are.
template <class T>
Specials specials_in(const T* values, std::int64_t count);

}  // namespace einrel::contraction
