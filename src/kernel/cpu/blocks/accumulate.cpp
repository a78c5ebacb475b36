#include "kernel/cpu/blocks/accumulate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernel/cpu/blocks/log_sum_exp.h"
#include "kernel/cpu/blocks/row_folds.h"
#include "kernel/cpu/blocks/vector_clones.h"
#include "machine/processor.h"

namespace einrel {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A + B, A * B: integers modulo 2^64.
template <class A>
A plus(A a, A b) {
  if constexpr (std::is_floating_point_v<A>) {
    return a + b;
  } else {
    return static_cast<A>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
}
template <class A>
A times(A a, A b) {
  if constexpr (std::is_floating_point_v<A>) {
    return a * b;
  } else {
    return static_cast<A>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
}
/// The extreme of two; a NaN stays.
template <class A>
A larger(A a, A b) {
  return ((a >= b) | (a != a)) ? a : b;
}
template <class A>
A smaller(A a, A b) {
  return ((a <= b) | (a != a)) ? a : b;
}

/// Whether `value` takes the place of `held`, which stands before it. The first NaN stays.
template <class A>
bool beats_maximum(A value, A held) {
  return !(value <= held) && held == held;
}
template <class A>
bool beats_minimum(A value, A held) {
  return !(value >= held) && held == held;
}

// What the clones call must be inlined into each of them.

template <class A, class V, class Combine>
[[gnu::always_inline]] inline void add_each(std::size_t n, A* __restrict held, const V* __restrict values,
                                            Combine combine) {
  for (std::size_t i = 0; i < n; ++i) held[i] = combine(held[i], static_cast<A>(values[i]));
}

template <class V, class Beats>
[[gnu::always_inline]] inline void add_extremes(std::size_t n, V* __restrict held, std::int64_t* __restrict positions,
                                                const V* __restrict values, std::int64_t position, Beats beats) {
  for (std::size_t i = 0; i < n; ++i) {
    const bool better = beats(values[i], held[i]);
    held[i] = better ? values[i] : held[i];
    positions[i] = better ? position : positions[i];
  }
}

/// Values enough at once to fill the widest vector registers several times.
template <class A>
constexpr std::size_t fold_width = 256 / sizeof(A);

/// All values combined into one, in an order that depends on n alone.
template <class A, class V, class Combine>
[[gnu::always_inline]] inline A fold_all(std::size_t n, A identity, const V* __restrict values, Combine combine) {
  constexpr std::size_t width = fold_width<A>;
  A partial[width];
  std::fill_n(partial, width, identity);
  const std::size_t whole = n - n % width;
  for (std::size_t i = 0; i < whole; i += width) {
    for (std::size_t j = 0; j < width; ++j) partial[j] = combine(partial[j], static_cast<A>(values[i + j]));
  }
  for (std::size_t i = whole; i < n; ++i) partial[i - whole] = combine(partial[i - whole], static_cast<A>(values[i]));
  for (std::size_t half = width / 2; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) partial[j] = combine(partial[j], partial[j + half]);
  }
  return partial[0];
}

template <class V>
std::int64_t truth(V value) {
  return static_cast<std::int64_t>(value != 0);
}

/// The arrays that sums and products, and extremes, of values of type V are in.
template <class V>
auto* sums(const Accumulators::State& state) {
  if constexpr (std::is_floating_point_v<V>) {
    return state.real;
  } else {
    return state.whole;
  }
}
template <class V>
auto* extremes(const Accumulators::State& state) {
  if constexpr (std::is_same_v<V, float>) {
    return state.single;
  } else {
    return sums<V>(state);
  }
}

template <class V>
[[gnu::always_inline]] inline void add_lanes(Reducer reducer, const Accumulators::State& state, std::size_t n,
                                             const V* values, std::int64_t position) {
  auto* const sum = sums<V>(state);
  V* const extreme = extremes<V>(state);
  using A = std::remove_pointer_t<decltype(sum)>;
  std::int64_t* const whole = state.whole;
  std::int64_t* const positions = state.position;
  switch (reducer) {
    case Reducer::sum: return add_each(n, sum, values, [](A a, A b) { return plus(a, b); });
    case Reducer::prod: return add_each(n, sum, values, [](A a, A b) { return times(a, b); });
    case Reducer::mean: return add_each(n, state.real, values, [](double a, double b) { return a + b; });
    case Reducer::max: return add_each(n, extreme, values, [](V a, V b) { return larger(a, b); });
    case Reducer::min: return add_each(n, extreme, values, [](V a, V b) { return smaller(a, b); });
    case Reducer::any:
      for (std::size_t i = 0; i < n; ++i) whole[i] |= truth(values[i]);
      return;
    case Reducer::all:
      for (std::size_t i = 0; i < n; ++i) whole[i] &= truth(values[i]);
      return;
    case Reducer::argmax:
      return add_extremes(n, extreme, positions, values, position, [](V v, V best) { return beats_maximum(v, best); });
    case Reducer::argmin:
      return add_extremes(n, extreme, positions, values, position, [](V v, V best) { return beats_minimum(v, best); });
    case Reducer::logsumexp: break;
  }
  throw Bug("a reducer without a loop over lanes");
}

/// A whole set of rows: each sum is brought and put away once for all of them.
template <class V>
[[gnu::always_inline]] inline void add_all_rows(std::size_t n, double* __restrict sums, const V* const* rows) {
  const V* all[Accumulators::most_rows];
  std::copy_n(rows, Accumulators::most_rows, all);
  constexpr std::size_t chunk = 256 / sizeof(V);  // values between two looks ahead, of two chunks
  constexpr std::size_t line = nominal_processor.line_bytes / sizeof(V);
  const auto add = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      double sum = sums[i];
#pragma GCC unroll 8
      for (const V* row : all) sum += static_cast<double>(row[i]);
      sums[i] = sum;
    }
  };
  std::size_t begin = 0;
  for (; begin + chunk <= n; begin += chunk) {
    for (const V* row : all) {
      for (std::size_t l = 2 * chunk; l < 3 * chunk; l += line) __builtin_prefetch(row + begin + l);
    }
    add(begin, begin + chunk);
  }
  add(begin, n);
}

/// Rows that come one after another.
template <class V>
[[gnu::always_inline]] inline void add_rows(Reducer reducer, const Accumulators::State& state, std::size_t n,
                                            std::size_t rows, const V* values, std::int64_t position) {
  for (std::size_t r = 0; r < rows; ++r) {
    add_lanes(reducer, state, n, values + r * n, position + static_cast<std::int64_t>(r));
  }
}

template <class A, class V>
[[gnu::always_inline]] inline A fold_arithmetic(Reducer reducer, std::size_t n, const V* values) {
  switch (reducer) {
    case Reducer::sum: return fold_all(n, A{0}, values, [](A a, A b) { return plus(a, b); });
    case Reducer::prod: return fold_all(n, A{1}, values, [](A a, A b) { return times(a, b); });
    default: throw Bug("a reducer without arithmetic");
  }
}

/// The extreme of the block and `held`, in the values' own type.
template <class V>
[[gnu::always_inline]] inline V fold_extremes(bool largest, std::size_t n, V held, const V* values) {
  if (largest) return fold_all(n, held, values, [](V a, V b) { return larger(a, b); });
  return fold_all(n, held, values, [](V a, V b) { return smaller(a, b); });
}

/// Where a value first stands. A chunk at a time, which vectorises.
[[gnu::always_inline]] inline std::size_t first_of(std::int64_t wanted, std::size_t n, const std::int64_t* values) {
  constexpr std::size_t chunk = 64;
  for (std::size_t begin = 0; begin < n; begin += chunk) {
    const std::size_t end = std::min(begin + chunk, n);
    int found = 0;
    for (std::size_t i = begin; i < end; ++i) found |= static_cast<int>(values[i] == wanted);
    if (found != 0) return static_cast<std::size_t>(std::find(values + begin, values + end, wanted) - values);
  }
  return n;
}

/// Whether a value is true (`wanted`), or false.
template <class V>
[[gnu::always_inline]] inline bool contains(bool wanted, std::size_t n, const V* values) {
  int found = 0;
  for (std::size_t i = 0; i < n; ++i) found |= static_cast<int>((values[i] != 0) == wanted);
  return found != 0;
}

// The inner loops once more for each instruction set. (Clones cannot be templates.)

EINREL_VECTOR_CLONES void lanes_clone(Reducer reducer, const Accumulators::State& state, std::size_t n,
                                      std::size_t rows, const float* values, std::int64_t position) {
  add_rows(reducer, state, n, rows, values, position);
}
EINREL_VECTOR_CLONES void lanes_clone(Reducer reducer, const Accumulators::State& state, std::size_t n,
                                      std::size_t rows, const double* values, std::int64_t position) {
  add_rows(reducer, state, n, rows, values, position);
}
EINREL_VECTOR_CLONES void lanes_clone(Reducer reducer, const Accumulators::State& state, std::size_t n,
                                      std::size_t rows, const std::int64_t* values, std::int64_t position) {
  add_rows(reducer, state, n, rows, values, position);
}
EINREL_VECTOR_CLONES void sums_clone(double* sums, std::size_t n, const float* const* rows) {
  add_all_rows(n, sums, rows);
}
EINREL_VECTOR_CLONES void sums_clone(double* sums, std::size_t n, const double* const* rows) {
  add_all_rows(n, sums, rows);
}
EINREL_VECTOR_CLONES double real_fold_clone(Reducer reducer, std::size_t n, const float* values) {
  return fold_arithmetic<double>(reducer, n, values);
}
EINREL_VECTOR_CLONES double real_fold_clone(Reducer reducer, std::size_t n, const double* values) {
  return fold_arithmetic<double>(reducer, n, values);
}
EINREL_VECTOR_CLONES double real_fold_clone(Reducer reducer, std::size_t n, const std::int64_t* values) {
  return fold_arithmetic<double>(reducer, n, values);
}
EINREL_VECTOR_CLONES std::int64_t whole_fold_clone(Reducer reducer, std::size_t n, const std::int64_t* values) {
  return fold_arithmetic<std::int64_t>(reducer, n, values);
}
EINREL_VECTOR_CLONES std::int64_t extreme_clone(bool largest, std::size_t n, std::int64_t held,
                                                const std::int64_t* values) {
  return fold_extremes(largest, n, held, values);
}
EINREL_VECTOR_CLONES std::size_t first_clone(std::int64_t wanted, std::size_t n, const std::int64_t* values) {
  return first_of(wanted, n, values);
}

EINREL_VECTOR_CLONES bool contains_clone(bool wanted, std::size_t n, const float* values) {
  return contains(wanted, n, values);
}
EINREL_VECTOR_CLONES bool contains_clone(bool wanted, std::size_t n, const double* values) {
  return contains(wanted, n, values);
}
EINREL_VECTOR_CLONES bool contains_clone(bool wanted, std::size_t n, const std::int64_t* values) {
  return contains(wanted, n, values);
}

/// The largest, or the least, of `held` and n values.
template <class V>
V extreme_of(bool largest, std::size_t n, V held, const V* values) {
  if constexpr (std::is_floating_point_v<V>) {
    take_row_extremes(largest, values, 1, n, &held);
    return held;
  } else {
    return extreme_clone(largest, n, held, values);
  }
}

/// Where a value first stands, a NaN being any NaN.
template <class V>
std::size_t position_of(V wanted, std::size_t n, const V* values) {
  if constexpr (std::is_floating_point_v<V>) {
    return first_in_row(values, n, wanted);
  } else {
    return first_clone(wanted, n, values);
  }
}

/// Rescales to the block's largest value once, then adds all exponentials.
template <class V>
void fold_logsumexp(double& largest, double& scaled, std::size_t n, const V* values) {
  const V lowest = std::is_floating_point_v<V> ? static_cast<V>(-infinity) : std::numeric_limits<V>::lowest();
  const double above = larger(largest, static_cast<double>(extreme_of(true, n, lowest, values)));
  if (above != largest) scaled *= std::exp(largest - above);
  largest = above;
  scaled += sum_exponentials(largest, values, n);
}

/// argmax and argmin: where the extreme of the block first stands, if it beats what is held.
template <class V>
void fold_position(bool largest, V& held, std::int64_t& position, std::size_t n, const V* values, std::int64_t begin) {
  const V extreme = extreme_of(largest, n, held, values);
  if (!(largest ? beats_maximum(extreme, held) : beats_minimum(extreme, held))) return;
  held = extreme;
  const std::size_t first = position_of(extreme, n, values);
  invariant(first < n, "the extreme of a block is in it");
  position = begin + static_cast<std::int64_t>(first);
}

template <class V>
void fold_lane(Reducer reducer, const Accumulators::State& state, std::size_t n, const V* values,
               std::int64_t position) {
  const auto arithmetic = [&] {
    if constexpr (std::is_floating_point_v<V>) {
      return real_fold_clone(reducer, n, values);
    } else {
      return whole_fold_clone(reducer, n, values);
    }
  };
  switch (reducer) {
    case Reducer::sum: *sums<V>(state) = plus(*sums<V>(state), arithmetic()); return;
    case Reducer::prod: *sums<V>(state) = times(*sums<V>(state), arithmetic()); return;
    case Reducer::mean: *state.real += real_fold_clone(Reducer::sum, n, values); return;
    case Reducer::max:
    case Reducer::min:
      *extremes<V>(state) = extreme_of(reducer == Reducer::max, n, *extremes<V>(state), values);
      return;
    case Reducer::any: *state.whole = *state.whole != 0 || contains_clone(true, n, values) ? 1 : 0; return;
    case Reducer::all: *state.whole = *state.whole == 0 || contains_clone(false, n, values) ? 0 : 1; return;
    case Reducer::argmax:
    case Reducer::argmin:
      return fold_position(reducer == Reducer::argmax, *extremes<V>(state), *state.position, n, values, position);
    case Reducer::logsumexp: return fold_logsumexp(*state.real, *state.scaled, n, values);
  }
}

/// The same reductions from another lane on.
Accumulators::State from_lane(Accumulators::State state, std::size_t lane) {
  const auto move = [lane](auto*& array) {
    if (array != nullptr) array += lane;
  };
  move(state.single);
  move(state.real);
  move(state.whole);
  move(state.position);
  move(state.scaled);
  return state;
}

/// `count` values for each of some lanes, those of a lane side by side.
template <class V>
void fold_lanes(Reducer reducer, const Accumulators::State& state, std::size_t lanes, std::size_t count,
                const V* values, std::int64_t position) {
  if constexpr (std::is_floating_point_v<V>) {
    switch (reducer) {
      case Reducer::sum:
      case Reducer::mean: return add_row_sums(values, lanes, count, state.real);
      case Reducer::max:
      case Reducer::min: return take_row_extremes(reducer == Reducer::max, values, lanes, count, extremes<V>(state));
      default: break;
    }
  }
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    fold_lane(reducer, from_lane(state, lane), count, values + lane * count, position);
  }
}

}  // namespace

Accumulators::Accumulators(Reducer reducer, DType values, std::size_t most_lanes)
    : reducer_(reducer), held_(held_by(reducer, values)) {
  const bool positions = reducer == Reducer::argmax || reducer == Reducer::argmin;
  const bool scaled = reducer == Reducer::logsumexp;
  const std::size_t held_size = held_ == Held::single ? sizeof(float) : sizeof(double);
  const auto lines = [most_lanes](std::size_t size) {
    return (most_lanes * size + sizeof(CacheLine) - 1) / sizeof(CacheLine);
  };
  const std::size_t more_lines = positions || scaled ? lines(sizeof(double)) : 0;
  memory_.resize(lines(held_size) + more_lines);
  std::byte* const held = memory_.front().bytes;
  std::byte* const more = held + lines(held_size) * sizeof(CacheLine);
  switch (held_) {
    case Held::single: state_.single = reinterpret_cast<float*>(held); break;
    case Held::real: state_.real = reinterpret_cast<double*>(held); break;
    case Held::whole: state_.whole = reinterpret_cast<std::int64_t*>(held); break;
  }
  if (positions) state_.position = reinterpret_cast<std::int64_t*>(more);
  if (scaled) state_.scaled = reinterpret_cast<double*>(more);
}

Accumulators::Held Accumulators::held_by(Reducer reducer, DType values) {
  switch (reducer) {
    case Reducer::mean:
    case Reducer::logsumexp: return Held::real;
    case Reducer::any:
    case Reducer::all: return Held::whole;
    case Reducer::sum:
    case Reducer::prod: return is_float(values) ? Held::real : Held::whole;
    case Reducer::max:
    case Reducer::min:
    case Reducer::argmax:
    case Reducer::argmin: break;
  }
  if (!is_float(values)) return Held::whole;
  return values == DType::f64 ? Held::real : Held::single;
}

void Accumulators::start(Range lanes) {
  const State state = from_lane(state_, lanes.first);
  const auto fill = [&](double real, std::int64_t whole) {
    switch (held_) {
      case Held::single: std::fill_n(state.single, lanes.count, static_cast<float>(real)); return;
      case Held::real: std::fill_n(state.real, lanes.count, real); return;
      case Held::whole: std::fill_n(state.whole, lanes.count, whole); return;
    }
  };
  switch (reducer_) {
    case Reducer::sum:
    case Reducer::mean:
    case Reducer::any: return fill(0, 0);
    case Reducer::prod:
    case Reducer::all: return fill(1, 1);
    case Reducer::argmax: std::fill_n(state.position, lanes.count, 0); [[fallthrough]];
    case Reducer::max: return fill(-infinity, std::numeric_limits<std::int64_t>::min());
    case Reducer::argmin: std::fill_n(state.position, lanes.count, 0); [[fallthrough]];
    case Reducer::min: return fill(infinity, std::numeric_limits<std::int64_t>::max());
    case Reducer::logsumexp: std::fill_n(state.scaled, lanes.count, 0); return fill(-infinity, 0);
  }
}

void Accumulators::add(const BlockValues& values, Range lanes, std::size_t rows, std::int64_t position) {
  const State state = from_lane(state_, lanes.first);
  std::visit(
      [&](const auto* block) {
        if (reducer_ != Reducer::logsumexp) {
          return lanes_clone(reducer_, state, lanes.count, rows, block, position);
        }
        for (std::size_t r = 0; r < rows; ++r) {
          add_exponentials(state.real, state.scaled, block + r * lanes.count, lanes.count);
        }
      },
      values);
}

void Accumulators::add(std::span<const BlockValues> rows, Range lanes, std::int64_t position) {
  const bool sums = reducer_ == Reducer::sum || reducer_ == Reducer::mean;
  const bool together = std::visit(
      [&]<class V>(const V*) {
        if constexpr (std::is_floating_point_v<V>) {
          if (!sums || rows.size() != most_rows) return false;
          std::array<const V*, most_rows> all;
          for (std::size_t r = 0; r < most_rows; ++r) all[r] = std::get<const V*>(rows[r]);
          sums_clone(state_.real + lanes.first, lanes.count, all.data());
          return true;
        }
        return false;
      },
      rows.front());
  if (together) return;
  for (std::size_t r = 0; r < rows.size(); ++r) add(rows[r], lanes, 1, position + static_cast<std::int64_t>(r));
}

void Accumulators::fold(const BlockValues& values, Range lanes, std::size_t count, std::int64_t position) {
  const State state = from_lane(state_, lanes.first);
  std::visit([&](const auto* block) { fold_lanes(reducer_, state, lanes.count, count, block, position); }, values);
}

Accumulators::Partial Accumulators::partial(std::size_t lane) const {
  Partial partial;
  if (state_.single != nullptr) partial.real = static_cast<double>(state_.single[lane]);
  if (state_.real != nullptr) partial.real = state_.real[lane];
  if (state_.whole != nullptr) partial.whole = state_.whole[lane];
  if (state_.position != nullptr) partial.position = state_.position[lane];
  if (state_.scaled != nullptr) partial.scaled = state_.scaled[lane];
  return partial;
}

void Accumulators::set(std::size_t lane, const Partial& partial) const {
  if (state_.single != nullptr) state_.single[lane] = static_cast<float>(partial.real);
  if (state_.real != nullptr) state_.real[lane] = partial.real;
  if (state_.whole != nullptr) state_.whole[lane] = partial.whole;
  if (state_.position != nullptr) state_.position[lane] = partial.position;
  if (state_.scaled != nullptr) state_.scaled[lane] = partial.scaled;
}

void Accumulators::combine(std::size_t lane, const Partial& later) {
  Partial both = partial(lane);
  const auto take_if = [&](bool better) {
    if (better) both = later;
  };
  switch (reducer_) {
    case Reducer::sum:
    case Reducer::mean:
      both.real += later.real;
      both.whole = plus(both.whole, later.whole);
      break;
    case Reducer::prod:
      both.real *= later.real;
      both.whole = times(both.whole, later.whole);
      break;
    case Reducer::any: both.whole |= later.whole; break;
    case Reducer::all: both.whole &= later.whole; break;
    case Reducer::max:
    case Reducer::argmax:
      take_if(held_ == Held::whole ? later.whole > both.whole : beats_maximum(later.real, both.real));
      break;
    case Reducer::min:
    case Reducer::argmin:
      take_if(held_ == Held::whole ? later.whole < both.whole : beats_minimum(later.real, both.real));
      break;
    case Reducer::logsumexp: {
      const double e = std::exp(later.real == both.real ? 0 : -std::abs(later.real - both.real));
      const bool above = later.real > both.real;
      both.scaled = above ? both.scaled * e + later.scaled : both.scaled + later.scaled * e;
      both.real = above ? later.real : both.real;
      break;
    }
  }
  set(lane, both);
}

void Accumulators::store_partials(Range lanes, Partial* to) const {
  for (std::size_t i = 0; i < lanes.count; ++i) to[i] = partial(lanes.first + i);
}

void Accumulators::combine(Range lanes, const Partial* later) {
  for (std::size_t i = 0; i < lanes.count; ++i) combine(lanes.first + i, later[i]);
}

const ReducedValues& Accumulators::finish(Range lanes, std::int64_t count) {
  const State state = from_lane(state_, lanes.first);
  if (reducer_ == Reducer::mean) {
    for (std::size_t i = 0; i < lanes.count; ++i) state.real[i] /= static_cast<double>(count);
  }
  if (reducer_ == Reducer::logsumexp) {
    for (std::size_t i = 0; i < lanes.count; ++i) state.real[i] += std::log(state.scaled[i]);
  }
  if (state.position != nullptr) {
    finished_ = state.position;
    return finished_;
  }
  switch (held_) {
    case Held::single: finished_ = state.single; break;
    case Held::real: finished_ = state.real; break;
    case Held::whole: finished_ = state.whole; break;
  }
  return finished_;
}

}  // namespace einrel
