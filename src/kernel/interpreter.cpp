#include "kernel/interpreter.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "kernel/accumulate.h"
#include "kernel/block_program.h"

namespace einrel {
namespace {

/// How the loops of a nest are walked. Blocks run either over output elements, each lane with its own reduction
/// ("accumulate"), or over the reduced positions of one output element ("fold").
struct Schedule {
  bool fold = false;
  std::vector<Loop> lanes;  ///< the last one innermost
  std::vector<Loop> outer;
};

bool is_read(const Reading& reading) { return reading.quantity != output_quantity; }

/// Nanoseconds to bring one element in (or out) when the next one is `step` further. Strides waste cache lines.
double element_cost(std::int64_t step, DType dtype) {
  if (step == 0) return 0.05;
  const double distance = std::abs(static_cast<double>(step)) * static_cast<double>(size_of(dtype));
  if (step == 1) return 0.03 * distance;
  return 0.3 + 1.5 * std::min(distance, 64.0) / 64;
}

/// A rough estimate in nanoseconds: only the order of the candidates matters.
double cost(const Schedule& schedule, const LoopNest& nest, const EinSum& einsum, DType output) {
  const auto lane_count = static_cast<double>(position_count(schedule.lanes));
  const auto outer_count = static_cast<double>(position_count(schedule.outer));
  const double blocks = outer_count * std::ceil(lane_count / static_cast<double>(lanes_per_block));
  const Loop* const inner = schedule.lanes.empty() ? nullptr : &schedule.lanes.back();
  const auto step = [&](std::size_t quantity) { return inner == nullptr ? 0 : inner->steps[quantity]; };
  const double runs = inner == nullptr ? outer_count : lane_count * outer_count / static_cast<double>(inner->extent);

  double per_element = schedule.fold ? 0.15 : 0.4;
  double per_run = 0;
  for (const Reading& reading : nest.readings) {
    if (!is_read(reading)) continue;
    per_element += element_cost(step(reading.quantity), reading.dtype);
    per_run += 5 + 10 * static_cast<double>(reading.guards.size());
  }
  const double per_block = 10 + 10 * static_cast<double>(einsum.body.steps.size());
  const double stores = schedule.fold ? 40 * outer_count : lane_count * element_cost(step(output_quantity), output);
  return lane_count * outer_count * per_element + (runs + blocks) * per_run + blocks * per_block + stores;
}

std::vector<Loop> loops_of_kind(const LoopNest& nest, bool reduced) {
  std::vector<Loop> loops;
  std::copy_if(nest.loops.begin(), nest.loops.end(), std::back_inserter(loops),
               [reduced](const Loop& loop) { return loop.reduced == reduced; });
  return loops;
}

/// The cheapest of: blocks over output elements or reduced positions, any loop of those innermost.
Schedule choose_schedule(const Vertex& vertex, const EinSum& einsum, const LoopNest& nest) {
  const bool order_counts = einsum.reducer == Reducer::argmax || einsum.reducer == Reducer::argmin;
  std::optional<Schedule> best;
  double best_cost = 0;
  const auto consider = [&](Schedule candidate) {
    const double candidate_cost = cost(candidate, nest, einsum, vertex.dtype);
    if (best && best_cost <= candidate_cost) return;
    best = std::move(candidate);
    best_cost = candidate_cost;
  };
  for (const bool fold : {false, true}) {
    if (fold && !einsum.reducer) continue;
    const Schedule as_given{fold, loops_of_kind(nest, fold), loops_of_kind(nest, !fold)};
    consider(as_given);
    if (fold && order_counts) continue;
    for (std::size_t inner = 0; inner + 1 < as_given.lanes.size(); ++inner) {
      Schedule candidate = as_given;
      const auto moved = candidate.lanes.begin() + static_cast<std::ptrdiff_t>(inner);
      std::rotate(moved, moved + 1, candidate.lanes.end());
      consider(std::move(candidate));
    }
  }
  return *std::move(best);
}

/// One evaluation under way.
class Interpretation {
 public:
  Interpretation(const Vertex& vertex, const EinSum& einsum, const LoopNest& nest, const ScalarBindings& scalars)
      : einsum_(einsum),
        schedule_(choose_schedule(vertex, einsum, nest)),
        program_(einsum.body, nest, scalars),
        lanes_(schedule_.lanes, nest.bases.size()),
        outer_(schedule_.outer, nest.bases),
        result_(vertex.dtype, vertex.bound) {}

  Tensor run() && {
    if (!einsum_.reducer) {
      map();
    } else if (schedule_.fold) {
      fold();
    } else {
      accumulate();
    }
    return std::move(result_);
  }

 private:
  /// Calls `use` with the begin of every block, after selecting it.
  template <class Use>
  void for_each_block(Use&& use) {
    constexpr auto block = static_cast<std::int64_t>(lanes_per_block);
    for (std::int64_t begin = 0; begin < lanes_.total(); begin += block) {
      lanes_.select(begin, static_cast<std::size_t>(std::min(block, lanes_.total() - begin)));
      use(begin);
    }
  }

  const std::int64_t* outer() const { return outer_.quantities().data(); }

  void map() {
    for_each_block([&](std::int64_t) {
      std::byte* const target = direct_target();
      const BlockValues values = program_.run(lanes_, outer(), target);
      std::visit(
          [&](const auto* block) {
            if (reinterpret_cast<const std::byte*>(block) != target) store(block);
          },
          values);
    });
  }

  void accumulate() {
    Accumulators accumulators(*einsum_.reducer, is_float(einsum_.body.type()));
    for_each_block([&](std::int64_t) {
      accumulators.start(lanes_.count());
      for (std::int64_t position = 0; position < outer_.count(); ++position, outer_.advance()) {
        accumulators.add(program_.run(lanes_, outer()), position);
      }
      std::visit([&](const auto* reduced) { store(reduced); }, accumulators.finish(outer_.count()));
    });
  }

  void fold() {
    Accumulators accumulators(*einsum_.reducer, is_float(einsum_.body.type()));
    for (std::int64_t element = 0; element < outer_.count(); ++element, outer_.advance()) {
      accumulators.start(1);
      for_each_block(
          [&](std::int64_t begin) { accumulators.fold(program_.run(lanes_, outer()), lanes_.count(), begin); });
      std::visit(
          [&](const auto* reduced) { store_block(result_.dtype(), reduced, at(outer()[output_quantity]), 0, 1); },
          accumulators.finish(lanes_.total()));
    }
  }

  std::byte* at(std::int64_t offset) {
    return result_.mutable_data() + offset * static_cast<std::int64_t>(size_of(result_.dtype()));
  }

  /// Where the block's values may be computed in place: contiguous in the result and stored as they are computed.
  std::byte* direct_target() {
    const DType dtype = result_.dtype();
    const bool as_computed = dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i64;
    const bool contiguous = lanes_.runs().size() == 1 && lanes_.step(output_quantity) == 1;
    if (!as_computed || dtype != einsum_.body.type() || !contiguous) return nullptr;
    return at(lanes_.at(0, output_quantity));
  }

  template <class T>
  void store(const T* values) {
    for (std::size_t r = 0; r < lanes_.runs().size(); ++r) {
      const Run run = lanes_.runs()[r];
      store_block(result_.dtype(), values + run.first, at(lanes_.at(r, output_quantity)), lanes_.step(output_quantity),
                  run.count);
    }
  }

  const EinSum& einsum_;
  Schedule schedule_;
  BlockProgram program_;
  Lanes lanes_;
  Odometer outer_;
  Tensor result_;
};

}  // namespace

Tensor interpret(const Vertex& vertex, const EinSum& einsum, const LoopNest& nest, const ScalarBindings& scalars) {
  return Interpretation(vertex, einsum, nest, scalars).run();
}

}  // namespace einrel
