#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "einsum/expr/functions.h"
#include "kernel/elementwise/block_program.h"
#include "machine/processor.h"

namespace einrel {

/// What a reduction has come to, per lane: extremes as they came, other floats in double, integers exactly in int64.
using ReducedValues = std::variant<const float*, const double*, const std::int64_t*>;

/// Reductions that are under way, one per lane.
class Accumulators {
 public:
  /// `values`: the type of the values that come, as they are computed; bools only for `any` and `all`.
  Accumulators(Reducer reducer, DType values, std::size_t most_lanes = lanes_per_block);

  /// A range of lanes.
  struct Range {
    std::size_t first = 0;
    std::size_t count = 1;
  };
  /// Forgets everything: reductions over nothing.
  void start(Range lanes);
  /// One more value for each lane, and again for each of `rows` rows. `position` counts the values of a lane from 0.
  void add(const BlockValues& values, Range lanes, std::size_t rows, std::int64_t position);
  /// The same for each of several rows, wherever they lie: 1 to most_rows, all of one type.
  void add(std::span<const BlockValues> rows, Range lanes, std::int64_t position);
  static constexpr std::size_t most_rows = 8;
  /// `count` more values for each lane, those of a lane side by side; the first of them is at `position`. They are
  /// reduced to one value first, in an order that depends on `count` alone.
  void fold(const BlockValues& values, Range lanes, std::size_t count, std::int64_t position);
  /// The reduction of one lane under way, to be gone on with elsewhere.
  struct Partial {
    double real = 0;
    std::int64_t whole = 0;
    std::int64_t position = 0;
    double scaled = 0;
  };
  /// Whether no further value changes the results: every lane's `any` is true, or `all` false.
  bool is_settled(Range lanes) const;
  void store_partials(Range lanes, Partial* to) const;
  /// The values behind `later` too, one for each lane, which come after those of that lane.
  void combine(Range lanes, const Partial* later);
  /// The results after `count` values per lane. They stay until the next start.
  const ReducedValues& finish(Range lanes, std::int64_t count);

  /// Entries per lane, aligned to cache lines: vector stores that straddle two are several times slower. Null where
  /// the reducer and the type of the values need none.
  struct State {
    float* single = nullptr;           ///< maximum or minimum of f32 so far
    double* real = nullptr;            ///< the same of f64; sum, product
    std::int64_t* whole = nullptr;     ///< the same of integers; any and all
    std::int64_t* position = nullptr;  ///< argmax, argmin: where the extreme stands
    double* scaled = nullptr;          ///< logsumexp: the sum of exp(x - real)
  };

 private:
  enum class Held : std::uint8_t { single, real, whole };
  static Held held_by(Reducer reducer, DType values);
  Partial partial(std::size_t lane) const;
  void set(std::size_t lane, const Partial& partial) const;
  void combine(std::size_t lane, const Partial& later);

  struct alignas(nominal_processor.line_bytes) CacheLine {
    std::byte bytes[nominal_processor.line_bytes];
  };

  Reducer reducer_;
  Held held_;  // which array the reductions are in
  std::vector<CacheLine> memory_;
  State state_;
  ReducedValues finished_;
};

}  // namespace einrel
