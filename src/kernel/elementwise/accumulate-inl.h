// The loops of accumulate_ops.h. Included by exact_loops.cpp once for each instruction set.

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "kernel/elementwise/accumulate_ops.h"
#include "machine/processor.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::HWY_NAMESPACE {
namespace {

/// One value more for each lane.
template <class H, class V>
[[gnu::always_inline]] inline void add_each(std::size_t n, const Accumulators::State& state,
                                            const V* __restrict values) {
  auto* const __restrict held = H::in(state);
  for (std::size_t i = 0; i < n; ++i) H::add(held[i], values[i]);
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

template <class V>
[[gnu::always_inline]] inline void add_lanes(Reducer reducer, const Accumulators::State& state, std::size_t n,
                                             const V* values, std::int64_t position) {
  switch (reducer) {
#define EINREL_PAIR_REDUCER(...)
#define EINREL_REDUCER(id, ...) \
  case Reducer::id:             \
    return add_each<HeldAs<ReducerRow<Reducer::id>, V>>(n, state, values);
#include "einsum/expr/functions.def"
    case Reducer::argmax:
      return add_extremes(n, held_in<V>(state), state.position, values, position,
                          [](V v, V best) { return beats_maximum(v, best); });
    case Reducer::argmin:
      return add_extremes(n, held_in<V>(state), state.position, values, position,
                          [](V v, V best) { return beats_minimum(v, best); });
    case Reducer::logsumexp: break;
  }
  throw Bug("a reducer without a loop over lanes");
}

/// Rows that come one after another.
template <class V>
void add_rows(Reducer reducer, const Accumulators::State& state, std::size_t n, std::size_t rows, const V* values,
              std::int64_t position) {
  for (std::size_t r = 0; r < rows; ++r) {
    if constexpr (std::is_same_v<V, Truth>) {
      invariant(kept_by(reducer) == Kept::truth, "truths are reduced to truths");
      if (reducer == Reducer::any) add_each<HeldAs<ReducerRow<Reducer::any>, V>>(n, state, values + r * n);
      if (reducer == Reducer::all) add_each<HeldAs<ReducerRow<Reducer::all>, V>>(n, state, values + r * n);
    } else {
      add_lanes(reducer, state, n, values + r * n, position + static_cast<std::int64_t>(r));
    }
  }
}

/// A whole set of rows: what is held is brought and put away once for all of them.
template <class H, class V>
[[gnu::always_inline]] inline void add_set(std::size_t n, double* __restrict held, const V* const* rows) {
  const V* all[Accumulators::most_rows];
  std::copy_n(rows, Accumulators::most_rows, all);
  constexpr std::size_t chunk = 256 / sizeof(V);  // values between two looks ahead, of two chunks
  constexpr std::size_t line = nominal_processor.line_bytes / sizeof(V);
  const auto add = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      double one = held[i];
#pragma GCC unroll 8
      for (const V* row : all) H::add(one, row[i]);
      held[i] = one;
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

template <class V>
// NOLINTNEXTLINE(readability-function-cognitive-complexity): a case for each row
void add_all_rows(Reducer reducer, double* held, std::size_t n, const V* const* rows) {
  switch (reducer) {
#define EINREL_PAIR_REDUCER(...)
#define EINREL_REDUCER(id, name, usage, meaning, result, traits, kept, ...) \
  case Reducer::id:                                                         \
    if constexpr (Kept::kept == Kept::real || Kept::kept == Kept::wide)     \
      return add_set<HeldAs<ReducerRow<Reducer::id>, V>>(n, held, rows);    \
    break;
#include "einsum/expr/functions.def"
    default: break;
  }
  throw Bug("a reducer without a loop over rows");
}

/// Values enough at once to fill the widest vector registers several times.
template <class A>
constexpr std::size_t fold_width = 256 / sizeof(A);

/// All values of a lane, in an order that depends on n alone, and then to what is held of it.
template <class Row, class V>
[[gnu::always_inline]] inline void fold_all(const Accumulators::State& state, std::size_t n,
                                            const V* __restrict values) {
  using H = HeldAs<Row, V>;
  using A = typename H::Type;
  constexpr std::size_t width = fold_width<A>;
  A partial[width];
  std::fill_n(partial, width, H::put(Row::template first<typename H::Computed>()));
  const std::size_t whole = n - n % width;
  for (std::size_t i = 0; i < whole; i += width) {
    for (std::size_t j = 0; j < width; ++j) H::add(partial[j], values[i + j]);
  }
  for (std::size_t i = whole; i < n; ++i) H::add(partial[i - whole], values[i]);
  for (std::size_t half = width / 2; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) H::merge(partial[j], partial[j + half]);
  }
  H::merge(*H::in(state), partial[0]);
}

template <class V>
// NOLINTNEXTLINE(readability-function-cognitive-complexity): a case for each row
void fold_plain(Reducer reducer, const Accumulators::State& state, std::size_t n, const V* values) {
  switch (reducer) {
#define EINREL_PAIR_REDUCER(...)
#define EINREL_REDUCER(id, name, usage, meaning, result, traits, kept, ...)   \
  case Reducer::id:                                                           \
    if constexpr (Kept::kept == Kept::real || Kept::kept == Kept::wide ||     \
                  (Kept::kept == Kept::as_it_comes && std::is_integral_v<V>)) \
      return fold_all<ReducerRow<Reducer::id>>(state, n, values);             \
    break;
#include "einsum/expr/functions.def"
    default: break;
  }
  throw Bug("a reducer without a loop over the values of a lane");
}

/// Where a value first stands. A chunk at a time, which vectorises.
std::size_t first_of(std::int64_t wanted, std::size_t n, const std::int64_t* values) {
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
bool contains(bool wanted, std::size_t n, const V* values) {
  if constexpr (std::is_same_v<V, Truth>) return std::memchr(values, wanted ? 1 : 0, n) != nullptr;
  int found = 0;
  for (std::size_t i = 0; i < n; ++i) found |= static_cast<int>((values[i] != 0) == wanted);
  return found != 0;
}

constexpr AccumulateOps all_accumulate_ops{{add_rows<float>, add_rows<double>, add_rows<std::int64_t>, add_rows<Truth>},
                                           {add_all_rows<float>, add_all_rows<double>},
                                           {fold_plain<float>, fold_plain<double>, fold_plain<std::int64_t>},
                                           {contains<float>, contains<double>, contains<std::int64_t>, contains<Truth>},
                                           first_of};

}  // namespace
}  // namespace einrel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
