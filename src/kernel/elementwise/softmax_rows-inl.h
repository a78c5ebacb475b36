// The loops of softmax_rows.h. Included by exact_loops.cpp once for each instruction set.

#include <algorithm>
#include <limits>
#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernel/elementwise/softmax_rows.h"
#include "kernel/elementwise/vector_math.h"
#include "machine/processor.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::HWY_NAMESPACE {
namespace {

/// The larger of two, or a NaN if the second number is one: what x86's vector instructions give.
template <class V>
HWY_INLINE V at_least(V least, V x) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Max(least, x);
#else
  return hn::IfThenElse(hn::Lt(x, least), least, x);
#endif
}

/// exponential_below of vector_math.h, with the same bits.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exponential_below_of(D d, V x) {
  using T = hn::TFromD<D>;
  using C = MathConstants<T>;
  const auto is_nothing = hn::Lt(x, hn::Set(d, -C::limit));
  x = at_least(hn::Set(d, -C::limit), x);
  const auto rounding = hn::Set(d, rounding_sum<T>(C::shift));
  const auto rounded = hn::MulAdd(x, hn::Set(d, std::numbers::log2e_v<T>), rounding);
  const auto n = hn::Sub(rounded, rounding);
  const auto r = hn::NegMulAdd(n, hn::Set(d, C::ln2_low), hn::NegMulAdd(n, hn::Set(d, C::ln2_high), x));
  constexpr std::size_t terms = std::extent_v<decltype(C::quotient)>;
  auto sum = hn::Set(d, C::quotient[terms - 1]);
  for (std::size_t i = terms - 1; i-- > 0;) sum = hn::MulAdd(sum, r, hn::Set(d, C::quotient[i]));
  const auto one = hn::Set(d, T{1});
  // Results that leave the range of numbers take some processors a hundred cycles, 0 does not.
  const auto exponential_of_r = hn::IfThenZeroElse(is_nothing, hn::MulAdd(r, hn::MulAdd(r, sum, one), one));
#if HWY_TARGET <= HWY_AVX3  // one instruction, which rounds as the product with 2^n does
  if constexpr (std::is_same_v<T, float>) return V{_mm512_scalef_ps(exponential_of_r.raw, n.raw)};
  if constexpr (std::is_same_v<T, double>) return V{_mm512_scalef_pd(exponential_of_r.raw, n.raw)};
#endif
  const hn::RebindToUnsigned<D> bits;
  const auto power = hn::BitCast(d, hn::ShiftLeft<std::numeric_limits<T>::digits - 1>(hn::BitCast(bits, rounded)));
  return hn::Mul(hn::Mul(exponential_of_r, power), hn::Set(d, 1 / C::power_of_shift));
}

/// So many values go through the loops at a time.
constexpr std::size_t width = RowSum::width;

/// A row of exponentials on its way to the result.
template <class T>
struct Quotients {
  const T* from = nullptr;
  T* to = nullptr;
  std::size_t left = 0;
  T divisor = 1;
};

template <class T>
HWY_INLINE void divide_some(Quotients<T>& row, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) row.to[i] = row.from[i] / row.divisor;
  row.from += count;
  row.to += count;
  row.left -= count;
}

/// The next values, where there are so many.
template <bool streams, class T>
HWY_INLINE void divide_next(Quotients<T>& row) {
  if (row.left < width) return;
  const hn::ScalableTag<T> d;
  const auto divisor = hn::Set(d, row.divisor);
  for (std::size_t v = 0; v < width; v += hn::MaxLanes(d)) {
    const auto quotient = hn::Div(hn::LoadU(d, row.from + v), divisor);
    if constexpr (streams) {
      hn::Stream(quotient, d, row.to + v);
    } else {
      hn::StoreU(quotient, d, row.to + v);
    }
  }
  row.from += width;
  row.to += width;
  row.left -= width;
}

template <bool streams, class T>
HWY_INLINE void divide_rest(Quotients<T>& row) {
  while (row.left >= width) divide_next<streams>(row);
  divide_some(row, row.left);
}

template <class T>
HWY_INLINE void exponentials_of(const T* from, T largest, T* to) {
  const hn::ScalableTag<T> d;
  for (std::size_t v = 0; v < width; v += hn::MaxLanes(d)) {
    hn::StoreU(exponential_below_of(d, hn::Sub(hn::LoadU(d, from + v), hn::Set(d, largest))), d, to + v);
  }
}

/// The exponentials of a block and their sum; the row before goes out and what lies `ahead` comes in meanwhile.
template <bool streams, class T>
HWY_INLINE double add_block(const T* from, std::size_t count, std::int64_t ahead, T largest, T* to,
                            Quotients<T>& before) {
  RowSum sum;
  std::size_t i = 0;
  for (; i + width <= count; i += width) {
    for (std::size_t l = 0; l < width; l += nominal_processor.line_bytes / sizeof(T)) {
      hwy::Prefetch(from + i + l + ahead);
    }
    exponentials_of(from + i, largest, to + i);
    sum.add(to + i);
    divide_next<streams>(before);
  }
  if (i < count) {
    T rest[width];
    std::fill(std::copy(from + i, from + count, rest), rest + width, largest);
    exponentials_of(rest, largest, rest);
    std::copy_n(rest, count - i, to + i);
  }
  return sum.finish(to + i, count - i);
}

template <bool streams, class T>
HWY_INLINE void rows_of(const SoftmaxRows& shape, const T* from, T* to, T* workspace) {
  constexpr std::size_t line = nominal_processor.line_bytes / sizeof(T);
  constexpr auto least_ahead = static_cast<std::int64_t>(nominal_processor.fetch_ahead / sizeof(T));
  const std::int64_t ahead = std::max(shape.from_step, least_ahead);
  T* const spaces[2] = {workspace, workspace + softmax_workspace(shape.length) / 2};
  Quotients<T> before;
  for (std::size_t r = 0; r < shape.rows; ++r, from += shape.from_step, to += shape.to_step) {
    T* const exponentials = spaces[r % 2];
    // A NaN makes the sum one, whatever the exponentials of the others are.
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    const T extreme = extreme_of_row<true, false, false>(from, shape.length, lowest);
    const bool is_nothing = shape.has_nothing && extreme == lowest;
    const T largest = is_nothing ? T{0} : extreme;
    double sum = 0;
    for (std::size_t begin = 0; begin < shape.length; begin += shape.block) {
      const std::size_t count = std::min(shape.block, shape.length - begin);
      sum += add_block<streams>(from + begin, count, ahead, largest, exponentials + begin, before);
    }
    divide_rest<streams>(before);
    before = {exponentials, to, shape.length, is_nothing ? T{1} : static_cast<T>(sum)};
    if (streams) {
      const std::size_t past = reinterpret_cast<std::uintptr_t>(to) / sizeof(T) % line;
      divide_some(before, std::min((line - past) % line, shape.length));
    }
  }
  divide_rest<streams>(before);
  if (streams) hwy::FlushStream();
}

template <class T>
void softmax_rows_of(const SoftmaxRows& shape, const T* from, T* to, T* workspace) {
  shape.streams ? rows_of<true>(shape, from, to, workspace) : rows_of<false>(shape, from, to, workspace);
}

}  // namespace
}  // namespace einrel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
