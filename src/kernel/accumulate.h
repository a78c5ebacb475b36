#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "einsum/functions.h"
#include "kernel/block_program.h"

namespace einrel {

/// What a reduction has come to, per lane: extremes as they came, other floats in double, integers exactly in int64.
using ReducedValues = std::variant<const float*, const double*, const std::int64_t*>;

/// The reductions of up to lanes_per_block output elements that are under way.
class Accumulators {
 public:
  /// `values`: the type of the values that come, as they are computed.
  Accumulators(Reducer reducer, DType values);

  /// Forgets everything: `lanes` reductions over nothing.
  void start(std::size_t lanes);
  /// One more value for each lane. `position` counts the values of a lane from 0.
  void add(BlockValues values, std::int64_t position);
  /// `count` more values for lane 0, the first of them at `position`. They are reduced to one value first, in an order
  /// that depends on `count` alone.
  void fold(BlockValues values, std::size_t count, std::int64_t position);
  /// The reduction of one lane under way, to be gone on with elsewhere.
  struct Partial {
    double real = 0;
    std::int64_t whole = 0;
    std::int64_t position = 0;
    double scaled = 0;
  };
  Partial partial(std::size_t lane) const;
  /// The values behind `later` too, which come after those of this lane.
  void combine(std::size_t lane, const Partial& later);
  /// The results after `count` values per lane. They stay until the next start.
  ReducedValues finish(std::int64_t count);

  /// Entries per lane, aligned to cache lines: vector stores that straddle two are several times slower. Which are
  /// used depends on the reducer and on the type of the values; `start` sets those. The rest stays as it is: clearing
  /// all would take longer than a small reduction.
  struct State {
    template <class T>
    using PerLane = std::array<T, lanes_per_block>;
    alignas(64) PerLane<float> single;           ///< maximum or minimum of f32 so far
    alignas(64) PerLane<double> real;            ///< the same of f64; sum, product
    alignas(64) PerLane<std::int64_t> whole;     ///< the same of integers; any and all
    alignas(64) PerLane<std::int64_t> position;  ///< argmax, argmin: where the extreme stands
    alignas(64) PerLane<double> scaled;          ///< logsumexp: the sum of exp(x - real)
  };

 private:
  enum class Held : std::uint8_t { single, real, whole };
  static Held held_by(Reducer reducer, DType values);
  void set(std::size_t lane, const Partial& partial);

  Reducer reducer_;
  Held held_;  // which array the reductions are in
  std::size_t lanes_ = 0;
  State state_;
};

}  // namespace einrel
