#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "einsum/expr/functions.h"
#include "einsum/expr/whole_number.h"
#include "kernel/elementwise/accumulate.h"

namespace einrel {

/// The loops for one instruction set; std::get finds one by its type.
struct AccumulateOps {
  template <class V>
  using AddRows = void (*)(Reducer, const Accumulators::State&, std::size_t n, std::size_t rows, const V* values,
                           std::int64_t position);
  template <class V>
  using AddAllRows = void (*)(Reducer, double* held, std::size_t n, const V* const* rows);
  template <class V>
  using Fold = void (*)(Reducer, const Accumulators::State&, std::size_t n, const V* values);
  template <class V>
  using Contains = bool (*)(bool wanted, std::size_t n, const V* values);

  std::tuple<AddRows<float>, AddRows<double>, AddRows<std::int64_t>, AddRows<Truth>> add_rows;
  std::tuple<AddAllRows<float>, AddAllRows<double>> add_all_rows;
  std::tuple<Fold<float>, Fold<double>, Fold<std::int64_t>> fold;
  std::tuple<Contains<float>, Contains<double>, Contains<std::int64_t>, Contains<Truth>> contains;
  std::size_t (*first_of)(std::int64_t wanted, std::size_t n, const std::int64_t* values);
};

/// Those for this processor.
const AccumulateOps& accumulate_ops();

/// Sums of exponentials that do not overflow: `scaled` times exp(`largest`), where `largest` is the largest argument.
struct LogSumExp {
  /// One more argument for each of n sums.
  template <class V>
  using Add = void (*)(double* largest, double* scaled, const V* x, std::size_t n);
  /// The sum of exp(x[i] - largest), where no x[i] is above `largest` and equal infinities differ by 0.
  template <class V>
  using Sum = double (*)(double largest, const V* x, std::size_t n);

  std::tuple<Add<float>, Add<double>, Add<std::int64_t>> add;
  std::tuple<Sum<float>, Sum<double>, Sum<std::int64_t>> sum;
};
const LogSumExp& log_sum_exp();

/// Where values of this type are held.
template <class T>
T* held_in(const Accumulators::State& state) {
  return std::get<T*>(std::make_tuple(state.single, state.real, state.whole));
}

/// A row of functions.def that keeps one number, as functors over doubles, floats or WholeNumbers.
template <Reducer reducer>
struct ReducerRow;
#define EINREL_PAIR_REDUCER(...)
#define EINREL_REDUCER(id, name, usage, meaning, result, traits, kept_, start, each, fold, continues, slope, sql, jax, \
                       torch, add, merge)                                                                              \
  template <>                                                                                                          \
  struct ReducerRow<Reducer::id> {                                                                                     \
    static constexpr Kept kept = Kept::kept_;                                                                          \
    template <class A>                                                                                                 \
    static constexpr A first() {                                                                                       \
      return start;                                                                                                    \
    }                                                                                                                  \
    template <class A>                                                                                                 \
    [[gnu::always_inline]] static A with_value(A a, A b) {                                                             \
      return add;                                                                                                      \
    }                                                                                                                  \
    template <class A>                                                                                                 \
    [[gnu::always_inline]] static A of_both(A a, A b) {                                                                \
      return merge;                                                                                                    \
    }                                                                                                                  \
  };
#include "einsum/expr/functions.def"

/// How Accumulators keep reductions of values of type V: where, in which type, and what that is computed as.
template <class Row, class V>
struct HeldAs {
  static constexpr bool is_real = Row::kept == Kept::real || (Row::kept == Kept::wide && std::is_floating_point_v<V>);
  using Type = std::conditional_t<Row::kept == Kept::as_it_comes, V, std::conditional_t<is_real, double, std::int64_t>>;
  using Computed = std::conditional_t<std::is_floating_point_v<Type>, Type, WholeNumber>;

  static Type* in(const Accumulators::State& state) { return held_in<Type>(state); }
  [[gnu::always_inline]] static void add(Type& held, V value) {
    if constexpr (Row::kept == Kept::truth) {
      held = put(Row::with_value(Computed(held), Computed(static_cast<std::int64_t>(value != 0))));
    } else {
      held = put(Row::with_value(Computed(held), Computed(static_cast<Type>(value))));
    }
  }
  [[gnu::always_inline]] static void merge(Type& held, Type later) {
    held = put(Row::of_both(Computed(held), Computed(later)));
  }
  [[gnu::always_inline]] static Type put(Computed value) {
    if constexpr (std::is_same_v<Computed, WholeNumber>) {
      return value.value;
    } else {
      return value;
    }
  }
};

/// Whether `value` takes the place of `held`, which stands before it. The first NaN stays.
template <class A>
bool beats_maximum(A value, A held) {
  return !(value <= held) && held == held;
}
template <class A>
bool beats_minimum(A value, A held) {
  return !(value >= held) && held == held;
}

}  // namespace einrel
