#include "kernel/accumulate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernel/block_ops.h"
#include "kernel/vector_clones.h"

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

template <class A, class V, class Beats>
[[gnu::always_inline]] inline void add_extremes(std::size_t n, A* __restrict held, std::int64_t* __restrict positions,
                                                const V* __restrict values, std::int64_t position, Beats beats) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto value = static_cast<A>(values[i]);
    const bool better = beats(value, held[i]);
    held[i] = better ? value : held[i];
    positions[i] = better ? position : positions[i];
  }
}

/// logsumexp, first part: exp's argument, -|value - held|, where equal infinities differ by 0.
template <class V>
[[gnu::always_inline]] inline void distances(std::size_t n, const double* __restrict held, const V* __restrict values,
                                             double* __restrict distance) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto value = static_cast<double>(values[i]);
    distance[i] = value == held[i] ? 0 : -std::abs(value - held[i]);
  }
}

/// logsumexp, second part: with e = exp(-|value - held|), rescale to the larger one and add the other.
template <class V>
[[gnu::always_inline]] inline void add_exponentials(std::size_t n, double* __restrict held, double* __restrict scaled,
                                                    const V* __restrict values, const double* __restrict e) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto value = static_cast<double>(values[i]);
    const bool above = value > held[i];
    scaled[i] = above ? scaled[i] * e[i] + 1 : scaled[i] + e[i];
    held[i] = above ? value : held[i];
  }
}

/// Values enough at once to fill the widest vector registers several times.
constexpr std::size_t fold_width = 64;

/// All values combined into one, in an order that depends on n alone.
template <class A, class V, class Combine>
[[gnu::always_inline]] inline A fold_all(std::size_t n, A identity, const V* values, Combine combine) {
  alignas(64) std::array<A, fold_width> partial;
  partial.fill(identity);
  for (std::size_t i = 0; i < n; i += fold_width) {
    add_each(std::min(fold_width, n - i), partial.data(), values + i, combine);
  }
  for (std::size_t width = fold_width / 2; width > 0; width /= 2) {
    for (std::size_t j = 0; j < width; ++j) partial[j] = combine(partial[j], partial[j + width]);
  }
  return partial[0];
}

template <class V>
std::int64_t truth(V value) {
  return static_cast<std::int64_t>(value != 0);
}

/// The array that values of type V reduce into.
template <class V>
auto& held(Accumulators::State& state) {
  if constexpr (std::is_floating_point_v<V>) {
    return state.real;
  } else {
    return state.whole;
  }
}

template <class V>
[[gnu::always_inline]] inline void add_lanes(Reducer reducer, Accumulators::State& state, std::size_t n,
                                             const V* values, std::int64_t position) {
  auto* const at = held<V>(state).data();
  using A = std::remove_pointer_t<decltype(at)>;
  std::int64_t* const whole = state.whole.data();
  std::int64_t* const positions = state.position.data();
  switch (reducer) {
    case Reducer::sum: return add_each(n, at, values, [](A a, A b) { return plus(a, b); });
    case Reducer::prod: return add_each(n, at, values, [](A a, A b) { return times(a, b); });
    case Reducer::max: return add_each(n, at, values, [](A a, A b) { return larger(a, b); });
    case Reducer::min: return add_each(n, at, values, [](A a, A b) { return smaller(a, b); });
    case Reducer::mean: return add_each(n, state.real.data(), values, [](double a, double b) { return a + b; });
    case Reducer::any:
      for (std::size_t i = 0; i < n; ++i) whole[i] |= truth(values[i]);
      return;
    case Reducer::all:
      for (std::size_t i = 0; i < n; ++i) whole[i] &= truth(values[i]);
      return;
    case Reducer::argmax:
      return add_extremes(n, at, positions, values, position, [](A v, A best) { return beats_maximum(v, best); });
    case Reducer::argmin:
      return add_extremes(n, at, positions, values, position, [](A v, A best) { return beats_minimum(v, best); });
    case Reducer::logsumexp: break;
  }
  throw Bug("a reducer without a loop over lanes");
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

/// The first value that is `extreme` (one of them is), a NaN being any NaN. A chunk at a time, which vectorises.
template <class V>
[[gnu::always_inline]] inline std::size_t first_of(V extreme, std::size_t n, const V* values) {
  const auto matches = [extreme](V value) { return (value == extreme) | ((extreme != extreme) & (value != value)); };
  for (std::size_t begin = 0; begin < n; begin += fold_width) {
    const std::size_t end = std::min(begin + fold_width, n);
    int found = 0;
    for (std::size_t i = begin; i < end; ++i) found |= static_cast<int>(matches(values[i]));
    if (found != 0) return static_cast<std::size_t>(std::find_if(values + begin, values + end, matches) - values);
  }
  throw Bug("the extreme of a block is not in it");
}

// The inner loops once more for each instruction set. (Clones cannot be templates.)

EINREL_VECTOR_CLONES void lanes_clone(Reducer reducer, Accumulators::State& state, std::size_t n, const float* values,
                                      std::int64_t position) {
  add_lanes(reducer, state, n, values, position);
}
EINREL_VECTOR_CLONES void lanes_clone(Reducer reducer, Accumulators::State& state, std::size_t n, const double* values,
                                      std::int64_t position) {
  add_lanes(reducer, state, n, values, position);
}
EINREL_VECTOR_CLONES void lanes_clone(Reducer reducer, Accumulators::State& state, std::size_t n,
                                      const std::int64_t* values, std::int64_t position) {
  add_lanes(reducer, state, n, values, position);
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
EINREL_VECTOR_CLONES float extreme_clone(bool largest, std::size_t n, float held, const float* values) {
  return fold_extremes(largest, n, held, values);
}
EINREL_VECTOR_CLONES double extreme_clone(bool largest, std::size_t n, double held, const double* values) {
  return fold_extremes(largest, n, held, values);
}
EINREL_VECTOR_CLONES std::int64_t extreme_clone(bool largest, std::size_t n, std::int64_t held,
                                                const std::int64_t* values) {
  return fold_extremes(largest, n, held, values);
}
EINREL_VECTOR_CLONES std::size_t first_clone(float extreme, std::size_t n, const float* values) {
  return first_of(extreme, n, values);
}
EINREL_VECTOR_CLONES std::size_t first_clone(double extreme, std::size_t n, const double* values) {
  return first_of(extreme, n, values);
}
EINREL_VECTOR_CLONES std::size_t first_clone(std::int64_t extreme, std::size_t n, const std::int64_t* values) {
  return first_of(extreme, n, values);
}

template <class V>
void add_logsumexp(Accumulators::State& state, std::size_t n, const V* values) {
  alignas(64) std::array<double, lanes_per_block> distance{};
  alignas(64) std::array<double, lanes_per_block> e{};
  distances(n, state.real.data(), values, distance.data());
  apply_block(UnaryFunction::exp, distance.data(), e.data(), n);
  add_exponentials(n, state.real.data(), state.scaled.data(), values, e.data());
}

/// Rescales to the block's largest value once, then adds all exponentials.
template <class V>
void fold_logsumexp(double& largest, double& scaled, std::size_t n, const V* values) {
  const V lowest = std::is_floating_point_v<V> ? static_cast<V>(-infinity) : std::numeric_limits<V>::lowest();
  const double above = larger(largest, static_cast<double>(extreme_clone(true, n, lowest, values)));
  if (above != largest) scaled *= std::exp(largest - above);
  largest = above;
  alignas(64) std::array<double, lanes_per_block> distance{};
  alignas(64) std::array<double, lanes_per_block> e{};
  for (std::size_t i = 0; i < n; ++i) {
    const auto value = static_cast<double>(values[i]);
    distance[i] = value == largest ? 0 : value - largest;
  }
  apply_block(UnaryFunction::exp, distance.data(), e.data(), n);
  scaled += real_fold_clone(Reducer::sum, n, e.data());
}

/// argmax and argmin: where the extreme of the block first stands, if it beats what is held.
template <class A, class V>
void fold_position(bool largest, A& held, std::int64_t& position, std::size_t n, const V* values, std::int64_t begin) {
  const V extreme = extreme_clone(largest, n, static_cast<V>(held), values);
  const auto value = static_cast<A>(extreme);
  if (!(largest ? beats_maximum(value, held) : beats_minimum(value, held))) return;
  held = value;
  position = begin + static_cast<std::int64_t>(first_clone(extreme, n, values));
}

template <class V>
void fold_lane(Reducer reducer, Accumulators::State& state, std::size_t n, const V* values, std::int64_t position) {
  auto& at = held<V>(state)[0];
  using A = std::remove_reference_t<decltype(at)>;
  const auto is_true = [](V value) { return value != 0; };
  const auto arithmetic = [&] {
    if constexpr (std::is_floating_point_v<A>) {
      return real_fold_clone(reducer, n, values);
    } else {
      return whole_fold_clone(reducer, n, values);
    }
  };
  switch (reducer) {
    case Reducer::sum: at = plus(at, arithmetic()); return;
    case Reducer::prod: at = times(at, arithmetic()); return;
    case Reducer::mean: state.real[0] += real_fold_clone(Reducer::sum, n, values); return;
    case Reducer::max:
    case Reducer::min: at = extreme_clone(reducer == Reducer::max, n, static_cast<V>(at), values); return;
    case Reducer::any: state.whole[0] |= static_cast<std::int64_t>(std::any_of(values, values + n, is_true)); return;
    case Reducer::all: state.whole[0] &= static_cast<std::int64_t>(std::all_of(values, values + n, is_true)); return;
    case Reducer::argmax:
    case Reducer::argmin: return fold_position(reducer == Reducer::argmax, at, state.position[0], n, values, position);
    case Reducer::logsumexp: return fold_logsumexp(state.real[0], state.scaled[0], n, values);
  }
}

}  // namespace

Accumulators::Accumulators(Reducer reducer, bool floats)
    : reducer_(reducer), in_double_(reducer == Reducer::mean || reducer == Reducer::logsumexp || floats) {
  if (reducer == Reducer::any || reducer == Reducer::all) in_double_ = false;
}

void Accumulators::start(std::size_t lanes) {
  lanes_ = lanes;
  const auto fill = [&](double real, std::int64_t whole) {
    std::fill_n(state_.real.begin(), lanes, real);
    std::fill_n(state_.whole.begin(), lanes, whole);
  };
  switch (reducer_) {
    case Reducer::sum:
    case Reducer::mean:
    case Reducer::any: fill(0, 0); break;
    case Reducer::prod:
    case Reducer::all: fill(1, 1); break;
    case Reducer::max:
    case Reducer::argmax:
    case Reducer::logsumexp: fill(-infinity, std::numeric_limits<std::int64_t>::min()); break;
    case Reducer::min:
    case Reducer::argmin: fill(infinity, std::numeric_limits<std::int64_t>::max()); break;
  }
  std::fill_n(state_.position.begin(), lanes, 0);
  std::fill_n(state_.scaled.begin(), lanes, 0);
}

void Accumulators::add(BlockValues values, std::int64_t position) {
  std::visit(
      [&](const auto* block) {
        if (reducer_ == Reducer::logsumexp) return add_logsumexp(state_, lanes_, block);
        lanes_clone(reducer_, state_, lanes_, block, position);
      },
      values);
}

void Accumulators::fold(BlockValues values, std::size_t count, std::int64_t position) {
  std::visit([&](const auto* block) { fold_lane(reducer_, state_, count, block, position); }, values);
}

Accumulators::Partial Accumulators::partial(std::size_t lane) const {
  return {state_.real[lane], state_.whole[lane], state_.position[lane], state_.scaled[lane]};
}

void Accumulators::combine(std::size_t lane, const Partial& later) {
  double& real = state_.real[lane];
  std::int64_t& whole = state_.whole[lane];
  const auto take_if = [&](bool better) {
    if (!better) return;
    real = later.real;
    whole = later.whole;
    state_.position[lane] = later.position;
  };
  switch (reducer_) {
    case Reducer::sum:
    case Reducer::mean:
      real += later.real;
      whole = plus(whole, later.whole);
      return;
    case Reducer::prod:
      real *= later.real;
      whole = times(whole, later.whole);
      return;
    case Reducer::any: whole |= later.whole; return;
    case Reducer::all: whole &= later.whole; return;
    case Reducer::max:
    case Reducer::argmax: return take_if(in_double_ ? beats_maximum(later.real, real) : later.whole > whole);
    case Reducer::min:
    case Reducer::argmin: return take_if(in_double_ ? beats_minimum(later.real, real) : later.whole < whole);
    case Reducer::logsumexp: {
      const double e = std::exp(later.real == real ? 0 : -std::abs(later.real - real));
      const bool above = later.real > real;
      state_.scaled[lane] = above ? state_.scaled[lane] * e + later.scaled : state_.scaled[lane] + later.scaled * e;
      real = above ? later.real : real;
      return;
    }
  }
}

ReducedValues Accumulators::finish(std::int64_t count) {
  double* const real = state_.real.data();
  if (reducer_ == Reducer::mean) {
    for (std::size_t i = 0; i < lanes_; ++i) real[i] /= static_cast<double>(count);
  }
  if (reducer_ == Reducer::logsumexp) {
    for (std::size_t i = 0; i < lanes_; ++i) real[i] += std::log(state_.scaled[i]);
  }
  if (reducer_ == Reducer::argmax || reducer_ == Reducer::argmin) return state_.position.data();
  if (in_double_) return state_.real.data();
  return state_.whole.data();
}

}  // namespace einrel
