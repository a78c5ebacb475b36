#include "kernel/elementwise/accumulate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernel/elementwise/accumulate_ops.h"
#include "kernel/elementwise/row_folds.h"

namespace einrel {
namespace {

/// The largest, or the least, of `held` and n values.
template <class V>
V extreme_of(bool largest, std::size_t n, V held, const V* values) {
  if constexpr (std::is_floating_point_v<V>) {
    take_row_extremes(largest, values, 1, n, &held);
  } else {
    Accumulators::State state;
    state.whole = &held;
    std::get<AccumulateOps::Fold<V>>(accumulate_ops().fold)(largest ? Reducer::max : Reducer::min, state, n, values);
  }
  return held;
}

/// Where a value first stands, a NaN being any NaN.
template <class V>
std::size_t position_of(V wanted, std::size_t n, const V* values) {
  if constexpr (std::is_floating_point_v<V>) {
    return first_in_row(values, n, wanted);
  } else {
    return accumulate_ops().first_of(wanted, n, values);
  }
}

/// Rescales to the block's largest value once, then adds all exponentials.
template <class V>
void fold_logsumexp(double& largest, double& scaled, std::size_t n, const V* values) {
  const V least = std::is_floating_point_v<V> ? static_cast<V>(lowest<double>()) : std::numeric_limits<V>::lowest();
  const auto most = static_cast<double>(extreme_of(true, n, least, values));
  const double above = ReducerRow<Reducer::max>::of_both(largest, most);
  if (above != largest) scaled *= std::exp(largest - above);
  largest = above;
  scaled += std::get<LogSumExp::Sum<V>>(log_sum_exp().sum)(largest, values, n);
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
void fold_numbers(Reducer reducer, const Accumulators::State& state, std::size_t n, const V* values,
                  std::int64_t position) {
  switch (reducer) {
    case Reducer::argmax:
    case Reducer::argmin:
      return fold_position(reducer == Reducer::argmax, *held_in<V>(state), *state.position, n, values, position);
    case Reducer::logsumexp: return fold_logsumexp(*state.real, *state.scaled, n, values);
    default: return std::get<AccumulateOps::Fold<V>>(accumulate_ops().fold)(reducer, state, n, values);
  }
}

template <class V>
void fold_lane(Reducer reducer, const Accumulators::State& state, std::size_t n, const V* values,
               std::int64_t position) {
  const auto contains = std::get<AccumulateOps::Contains<V>>(accumulate_ops().contains);
  if (reducer == Reducer::any) {
    *state.whole = *state.whole != 0 || contains(true, n, values) ? 1 : 0;
  } else if (reducer == Reducer::all) {
    *state.whole = *state.whole == 0 || contains(false, n, values) ? 0 : 1;
  } else if constexpr (std::is_same_v<V, Truth>) {
    throw Bug("truths are reduced to truths");
  } else {
    fold_numbers(reducer, state, n, values, position);
  }
}

/// What a reduction is before its first value.
template <class A>
A first_of(Reducer reducer) {
  switch (reducer) {
#define EINREL_REDUCER(id, name, usage, meaning, result, traits, kept, start, ...) \
  case Reducer::id: {                                                              \
    return start;                                                                  \
  }
#include "einsum/expr/functions.def"
  }
  throw Bug("a reducer outside its enumeration");
}

template <class Row>
void merge(Accumulators::Partial& both, const Accumulators::Partial& later) {
  if constexpr (Row::kept != Kept::truth) both.real = Row::of_both(both.real, later.real);
  both.whole = Row::of_both(WholeNumber(both.whole), WholeNumber(later.whole)).value;
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
      case Reducer::min: return take_row_extremes(reducer == Reducer::max, values, lanes, count, held_in<V>(state));
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
  switch (kept_by(reducer)) {
    case Kept::real: return Held::real;
    case Kept::truth: return Held::whole;
    case Kept::wide: return is_float(values) ? Held::real : Held::whole;
    case Kept::as_it_comes: break;
  }
  if (!is_float(values)) return Held::whole;
  return values == DType::f64 ? Held::real : Held::single;
}

void Accumulators::start(Range lanes) {
  const State state = from_lane(state_, lanes.first);
  if (state.single != nullptr) std::fill_n(state.single, lanes.count, first_of<float>(reducer_));
  if (state.real != nullptr) std::fill_n(state.real, lanes.count, first_of<double>(reducer_));
  if (state.whole != nullptr) std::fill_n(state.whole, lanes.count, first_of<WholeNumber>(reducer_).value);
  if (state.position != nullptr) std::fill_n(state.position, lanes.count, 0);
  if (state.scaled != nullptr) std::fill_n(state.scaled, lanes.count, 0);
}

void Accumulators::add(const BlockValues& values, Range lanes, std::size_t rows, std::int64_t position) {
  const State state = from_lane(state_, lanes.first);
  std::visit(
      [&]<class V>(const V* block) {
        if (reducer_ != Reducer::logsumexp) {
          const auto add_rows = std::get<AccumulateOps::AddRows<V>>(accumulate_ops().add_rows);
          return add_rows(reducer_, state, lanes.count, rows, block, position);
        }
        if constexpr (!std::is_same_v<V, Truth>) {
          const auto add_exponentials = std::get<LogSumExp::Add<V>>(log_sum_exp().add);
          for (std::size_t r = 0; r < rows; ++r) {
            add_exponentials(state.real, state.scaled, block + r * lanes.count, lanes.count);
          }
        }
      },
      values);
}

void Accumulators::add(std::span<const BlockValues> rows, Range lanes, std::int64_t position) {
  const Kept kept = kept_by(reducer_);
  const bool adds_up = (kept == Kept::wide || kept == Kept::real) && state_.scaled == nullptr;
  const bool together = std::visit(
      [&]<class V>(const V*) {
        if constexpr (std::is_floating_point_v<V>) {
          if (!adds_up || rows.size() != most_rows) return false;
          std::array<const V*, most_rows> all;
          for (std::size_t r = 0; r < most_rows; ++r) all[r] = std::get<const V*>(rows[r]);
          const auto add_all_rows = std::get<AccumulateOps::AddAllRows<V>>(accumulate_ops().add_all_rows);
          add_all_rows(reducer_, state_.real + lanes.first, lanes.count, all.data());
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
#define EINREL_PAIR_REDUCER(...)
#define EINREL_REDUCER(id, ...)                  \
  case Reducer::id:                              \
    merge<ReducerRow<Reducer::id>>(both, later); \
    break;
#include "einsum/expr/functions.def"
    case Reducer::argmax:
      take_if(held_ == Held::whole ? later.whole > both.whole : beats_maximum(later.real, both.real));
      break;
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

bool Accumulators::is_settled(Range lanes) const {
  if (kept_by(reducer_) != Kept::truth) return false;
  const std::int64_t* const begin = state_.whole + lanes.first;
  const std::int64_t open = reducer_ == Reducer::any ? 0 : 1;
  return std::find(begin, begin + lanes.count, open) == begin + lanes.count;
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
