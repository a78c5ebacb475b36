#include "kernel/elementwise/schedule.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "machine/processor.h"

namespace einrel {
namespace {

/// Nanoseconds to bring one element in (or out) when the next one is `step` further: of the loops here. Strides waste
/// cache lines.
double element_cost(std::int64_t step, DType dtype) {
  constexpr auto line = static_cast<double>(nominal_processor.line_bytes);
  if (step == 0) return 0.05;
  const double distance = std::abs(static_cast<double>(step)) * static_cast<double>(size_of(dtype));
  if (step == 1) return 0.03 * distance;
  return 0.3 + 1.5 * std::min(distance, line) / line;
}

/// The loops that a schedule walks, the fastest last.
std::vector<Loop> walk_of(const Schedule& schedule) {
  std::vector<Loop> walk = schedule.outer_results;
  walk.insert(walk.end(), schedule.outer_reduced.begin(), schedule.outer_reduced.end());
  walk.insert(walk.end(), schedule.lanes.begin(), schedule.lanes.end());
  return walk;
}

/// How many positions the walk goes on until a quantity jumps.
double positions_until_jump(const std::vector<Loop>& walk, std::size_t quantity) {
  double positions = 1;
  std::int64_t next = 0;  // step that the next loop must have to go on
  for (std::size_t l = walk.size(); l-- > 0;) {
    const std::int64_t step = walk[l].steps[quantity];
    if (l + 1 != walk.size() && step != next) return positions;
    positions *= static_cast<double>(walk[l].extent);
    next = multiply_wrapping(step, walk[l].extent);
  }
  return positions;
}

/// Walks the candidates and prices them.
class Pricing {
 public:
  Pricing(const KernelSpec& spec, const LoopNest& nest, std::int64_t most_lanes)
      : nest_(nest), output_(spec.result.dtype), steps_(spec.einsum.body.steps.size()), most_lanes_(most_lanes) {}

  /// A rough estimate in nanoseconds: only the order of the candidates matters.
  double cost(const Schedule& schedule) const {
    const std::vector<Loop> walk = walk_of(schedule);
    const Cut cut = cut_of(schedule.lanes, most_lanes_);
    const auto positions = static_cast<double>(position_count(walk));
    const auto blocks = positions / static_cast<double>(position_count(schedule.lanes)) * blocks_of(schedule, cut);
    const Loop* const inner = schedule.lanes.empty() ? nullptr : &schedule.lanes.back();
    const auto step = [&](std::size_t quantity) { return inner == nullptr ? 0 : inner->steps[quantity]; };
    const double rows = cut.whole == 0 || inner == nullptr ? blocks : positions / static_cast<double>(inner->extent);
    double nanoseconds = blocks * (10 + 10 * static_cast<double>(steps_)) + positions * per_value(schedule);
    for (const Reading& reading : nest_.readings) {
      if (!is_read(reading)) continue;
      const double until_jump = positions_until_jump(walk, reading.quantity);
      const bool in_place = until_jump >= static_cast<double>(cut.inside * cut.range) && reading.guards.empty();
      nanoseconds += positions * element_cost(step(reading.quantity), reading.dtype) + 5 * blocks;
      nanoseconds += (in_place ? 0 : rows) * (4 + 10 * static_cast<double>(reading.guards.size()));
      nanoseconds += positions / until_jump * 10;
    }
    return nanoseconds + cost_of_stores(schedule, positions);
  }

  /// Whether some operand lies on from one block to the next.
  bool goes_on(const Schedule& schedule) const {
    const Cut cut = cut_of(schedule.lanes, most_lanes_);
    return std::any_of(nest_.readings.begin(), nest_.readings.end(), [&](const Reading& reading) {
      return is_read(reading) && std::abs(schedule.lanes.back().steps[reading.quantity]) == 1 &&
             positions_until_jump(schedule.lanes, reading.quantity) > static_cast<double>(cut.inside * cut.range);
    });
  }

 private:
  double blocks_of(const Schedule& schedule, const Cut& cut) const {
    double around = 1;
    for (std::size_t l = 0; l + cut.whole + 1 < schedule.lanes.size(); ++l) {
      around *= static_cast<double>(schedule.lanes[l].extent);
    }
    return around * static_cast<double>(cut.ranges);
  }

  /// To carry one value through the block, and to reduce it.
  static double per_value(const Schedule& schedule) {
    switch (schedule.kind) {
      case Schedule::Kind::map: return 0.3;
      case Schedule::Kind::results: return 0.1;
      case Schedule::Kind::rows: return 0.05 + 3 / static_cast<double>(schedule.lanes.back().extent);
      case Schedule::Kind::columns: return 0.1 + 8 / static_cast<double>(schedule.lanes.back().extent);
      case Schedule::Kind::fold: return 0.05;
    }
    return 0;
  }

  double cost_of_stores(const Schedule& schedule, double positions) const {
    switch (schedule.kind) {
      case Schedule::Kind::map:
      case Schedule::Kind::results: {
        const auto results = static_cast<double>(position_count(schedule.lanes));
        const std::int64_t step = schedule.lanes.empty() ? 0 : schedule.lanes.back().steps[output_quantity];
        return results * element_cost(step, output_);
      }
      case Schedule::Kind::rows: {
        return 1.5 * static_cast<double>(position_count(schedule.lanes)) /
               static_cast<double>(schedule.lanes.back().extent);
      }
      case Schedule::Kind::columns: {
        const auto inner = static_cast<double>(schedule.lanes.back().extent);
        return (40 + inner) * static_cast<double>(position_count(schedule.outer_results));
      }
      case Schedule::Kind::fold: return 40 * static_cast<double>(position_count(schedule.outer_results));
    }
    return positions;
  }

  const LoopNest& nest_;
  DType output_;
  std::size_t steps_;
  std::int64_t most_lanes_;
};

std::vector<Loop> loops_of_kind(const LoopNest& nest, bool reduced) {
  std::vector<Loop> loops;
  std::copy_if(nest.loops.begin(), nest.loops.end(), std::back_inserter(loops),
               [reduced](const Loop& loop) { return loop.reduced == reduced; });
  return loops;
}

/// The same loops with one of them innermost.
std::vector<Loop> with_inner(std::vector<Loop> loops, std::size_t inner) {
  const auto moved = loops.begin() + static_cast<std::ptrdiff_t>(inner);
  std::rotate(moved, moved + 1, loops.end());
  return loops;
}

class Chooser {
 public:
  Chooser(const KernelSpec& spec, const LoopNest& nest, std::int64_t most_lanes)
      : pricing_(spec, nest, most_lanes),
        most_lanes_(most_lanes),
        results_(loops_of_kind(nest, false)),
        reduced_(loops_of_kind(nest, true)),
        order_counts_(finds_position(spec.einsum.reducer)) {}

  Schedule map() {
    for_each_inner(results_, [&](std::vector<Loop> lanes) {
      consider({Schedule::Kind::map, std::move(lanes), {}, {}});
    });
    return *std::move(best_);
  }

  Schedule reduce() {
    find_reduction();
    Schedule& best = *best_;
    constexpr std::int64_t most_results = 4096;
    if (!best.is_by_result() && !best.outer_reduced.empty() && !best.lanes.empty() && pricing_.goes_on(best)) {
      best.results_together = most_results;
    }
    return *std::move(best_);
  }

 private:
  void find_reduction() {
    using Kind = Schedule::Kind;
    for_each_inner(results_, [&](const std::vector<Loop>& results) {
      consider({Kind::results, results, {}, reduced_});
      for_each_inner_reduced([&](std::vector<Loop> reduced) {
        const Loop inner = reduced.back();
        reduced.pop_back();
        if (results.empty()) return;
        if (inner.extent <= most_lanes_) {
          std::vector<Loop> lanes = results;
          lanes.push_back(inner);
          consider({Kind::rows, std::move(lanes), {}, reduced});
        }
        if (results.back().extent <= most_lanes_ / 2) {
          consider({Kind::columns, {inner, results.back()}, {results.begin(), results.end() - 1}, reduced});
        }
      });
    });
    for_each_inner_reduced([&](std::vector<Loop> reduced) {
      consider({Kind::fold, std::move(reduced), results_, {}});
    });
  }

  void consider(Schedule candidate) {
    candidate.seconds = 1e-9 * pricing_.cost(candidate);
    if (!best_ || candidate.seconds < best_->seconds) best_ = std::move(candidate);
  }

  template <class Use>
  static void for_each_inner(const std::vector<Loop>& loops, Use use) {
    use(loops);
    for (std::size_t inner = 0; inner + 1 < loops.size(); ++inner) use(with_inner(loops, inner));
  }
  /// Only as they are where the first of equal values counts.
  template <class Use>
  void for_each_inner_reduced(Use use) const {
    if (reduced_.empty()) return;
    if (order_counts_) return use(reduced_);
    for_each_inner(reduced_, use);
  }

  Pricing pricing_;
  std::int64_t most_lanes_;
  std::vector<Loop> results_;
  std::vector<Loop> reduced_;
  bool order_counts_;
  std::optional<Schedule> best_;
};

}  // namespace

Schedule choose_schedule(const KernelSpec& spec, const LoopNest& nest, std::int64_t most_lanes) {
  Chooser chooser(spec, nest, most_lanes);
  return spec.einsum.reducer ? chooser.reduce() : chooser.map();
}

}  // namespace einrel
