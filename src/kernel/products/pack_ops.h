#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "kernel/products/bf16_pair.h"
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

/// Which values that kernels treat in their own way occur among some.
struct Specials {
  bool nan = false;
  bool plus_infinity = false;
  bool minus_infinity = false;
  bool subnormal = false;
};
template <class T, class Stored>
using CopyLines = void (*)(const LineCopy<T, Stored>&);
template <class T>
using TransposeLines = void (*)(const T* const*, std::int64_t, std::int64_t, T*, std::int64_t, std::int64_t);
template <class Stored>
using ConvertLine = void (*)(const Stored*, std::int64_t, float*);
template <class Stored>
using NarrowLine = void (*)(const float*, std::int64_t, Stored*);
using Outside = std::uint64_t (*)(const std::int64_t*, std::int64_t, std::int64_t, std::int64_t);
template <class T>
using StoreLines = void (*)(const LineStore<T>&);
template <class T>
using SpecialsIn = Specials (*)(const T*, std::int64_t);

/// Every loop for one instruction set; std::get finds one by its type.
struct PackOps {
  std::tuple<CopyLines<float, float>, CopyLines<double, double>, CopyLines<std::int32_t, std::int32_t>,
             CopyLines<std::int64_t, std::int64_t>, CopyLines<float, BFloat16>, CopyLines<float, Float16>,
             CopyLines<BFloat16Pair, BFloat16>>
      copy;
  std::tuple<TransposeLines<float>, TransposeLines<double>, TransposeLines<std::int32_t>, TransposeLines<std::int64_t>,
             TransposeLines<BFloat16Pair>>
      transpose;
  std::tuple<ConvertLine<BFloat16>, ConvertLine<Float16>> convert;
  std::tuple<NarrowLine<BFloat16>, NarrowLine<Float16>> narrow;
  bool is_avx512 = false;
  Outside outside;
  std::tuple<StoreLines<float>, StoreLines<double>> store;
  std::tuple<SpecialsIn<float>, SpecialsIn<double>, SpecialsIn<BFloat16Pair>> specials;
};

/// Those for this processor.
const PackOps& pack_ops();

/// T is float, double, int32_t or int64_t, Stored the same or, of float, bf16 or f16; or T is a pair, and Stored bf16.
template <class T, class Stored>
void copy_lines(const LineCopy<T, Stored>& copy) {
  std::get<CopyLines<T, Stored>>(pack_ops().copy)(copy);
}

/// to[p * step + l] = lines[l][p] for p below count, l below width. T as above. What lies `ahead` elements behind them
/// is fetched meanwhile.
template <class T>
void transpose_lines(const T* const* lines, std::int64_t width, std::int64_t count, T* to, std::int64_t step,
                     std::int64_t ahead = 0) {
  std::get<TransposeLines<T>>(pack_ops().transpose)(lines, width, count, to, step, ahead);
}

/// Stored is bf16 or f16, at any address.
template <class Stored>
void convert_line(const Stored* from, std::int64_t count, float* to) {
  std::get<ConvertLine<Stored>>(pack_ops().convert)(from, count, to);
}

/// The other way: rounded to nearest, ties to even.
inline void narrow_line(const float* from, std::int64_t count, Float16* to) {
  std::get<NarrowLine<Float16>>(pack_ops().narrow)(from, count, to);
}
void narrow_line(const float* from, std::int64_t count, BFloat16* to);

/// Bit l is set where values[l] lies outside of [low, high], for l below count; count is at most 64.
inline std::uint64_t outside(const std::int64_t* values, std::int64_t count, std::int64_t low, std::int64_t high) {
  return pack_ops().outside(values, count, low, high);
}

/// T is float or double.
template <class T>
void store_lines(const LineStore<T>& store) {
  std::get<StoreLines<T>>(pack_ops().store)(store);
}

/// T is float or double, of which all but subnormals are looked for, or a pair, of which only they are.
template <class T>
Specials specials_in(const T* values, std::int64_t count) {
  return std::get<SpecialsIn<T>>(pack_ops().specials)(values, count);
}

}  // namespace einrel::contraction
