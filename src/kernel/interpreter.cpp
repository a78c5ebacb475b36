#include "kernel/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <type_traits>

#include "kernel/accumulate.h"
#include "kernel/block_program.h"
#include "kernel/reading.h"
#include "kernel/streaming.h"

namespace einrel {
namespace {

/// How the loops of a nest are walked. Blocks run either over output elements, each lane with its own reduction
/// ("accumulate"), or over the reduced positions of one output element ("fold").
struct Schedule {
  bool fold = false;
  std::vector<Loop> lanes;  ///< the last one innermost
  std::vector<Loop> outer;
  double seconds = 0;  ///< modelled, on one thread
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
Schedule choose_schedule(const KernelSpec& spec, const LoopNest& nest) {
  const EinSum& einsum = spec.einsum;
  const bool order_counts = einsum.reducer == Reducer::argmax || einsum.reducer == Reducer::argmin;
  std::optional<Schedule> best;
  const auto consider = [&](Schedule candidate) {
    candidate.seconds = 1e-9 * cost(candidate, nest, einsum, spec.result.dtype);
    if (!best || candidate.seconds < best->seconds) best = std::move(candidate);
  };
  for (const bool fold : {false, true}) {
    if (fold && !einsum.reducer) continue;
    const Schedule as_given{fold, loops_of_kind(nest, fold), loops_of_kind(nest, !fold), 0};
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

/// A half-open range of positions.
struct Positions {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The i-th of `pieces` nearly equal ranges of [0, total), each but the last a multiple of `unit`.
Positions piece_of(std::int64_t total, std::int64_t pieces, std::int64_t unit, std::int64_t i) {
  const std::int64_t units = (total + unit - 1) / unit;
  return {std::min(units * i / pieces * unit, total), std::min(units * (i + 1) / pieces * unit, total)};
}

bool stored_as_computed(const KernelSpec& spec) {
  const DType dtype = spec.result.dtype;
  const bool is_block_type = dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i64;
  return is_block_type && dtype == spec.einsum.body.type();
}

/// One EinSum made ready.
class Interpreter {
 public:
  Interpreter(const KernelSpec& spec, LoopNest nest, Schedule schedule)
      : reducer_(spec.einsum.reducer),
        computed_(spec.einsum.body.type()),
        accumulate_(spec.accumulate),
        as_computed_(stored_as_computed(spec)),
        streams_(spec.large_result && as_computed_ && !reducer_),
        result_(spec.result),
        nest_(std::move(nest)),
        schedule_(std::move(schedule)),
        program_(spec.einsum.body, nest_, spec.scalars),
        lanes_(schedule_.lanes, nest_.bases.size()),
        outer_(schedule_.outer, nest_.bases) {
    cut();
  }
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  std::int64_t own_bytes() const {
    return program_.workspace_bytes() + block() * static_cast<std::int64_t>(sizeof(double));
  }
  std::int64_t shared_bytes() const {
    return pieces_ == 1 ? 0 : pieces_ * outputs() * static_cast<std::int64_t>(sizeof(Accumulators::Partial));
  }
  std::int64_t output_parts() const { return output_parts_; }
  std::int64_t pieces() const { return pieces_; }

  class Part;

 private:
  /// Parts of a tenth of a millisecond and more: over the output, and where that gives only a few, over what is
  /// reduced as well.
  void cut() {
    constexpr double least_seconds = 1e-4;
    constexpr double most_parts = 64;
    constexpr std::int64_t enough = 8;
    constexpr std::int64_t most_partials = 8192;
    const auto wanted = static_cast<std::int64_t>(std::clamp(schedule_.seconds / least_seconds, 1.0, most_parts));
    output_parts_ = std::min(wanted, schedule_.fold ? outputs() : blocks_of(lanes_.total()));
    if (!reducer_ || output_parts_ >= enough || outputs() > most_partials / enough) return;
    const std::int64_t reduced = schedule_.fold ? blocks_of(lanes_.total()) : outer_.count();
    pieces_ =
        std::clamp(std::min({wanted / output_parts_, reduced, most_partials / outputs()}), std::int64_t{1}, wanted);
  }
  std::int64_t block() const { return program_.most_lanes(); }
  std::int64_t blocks_of(std::int64_t lanes) const { return lanes / block() + (lanes % block() == 0 ? 0 : 1); }
  std::int64_t outputs() const { return schedule_.fold ? outer_.count() : lanes_.total(); }
  std::int64_t reduced() const { return schedule_.fold ? lanes_.total() : outer_.count(); }
  /// Of outputs and of reduced positions, both for the same part.
  Positions outputs_of(std::int64_t part) const {
    return piece_of(outputs(), output_parts_, schedule_.fold ? 1 : block(), part);
  }
  Positions reduced_of(std::int64_t piece) const {
    return piece_of(reduced(), pieces_, schedule_.fold ? block() : 1, piece);
  }

  std::optional<Reducer> reducer_;
  DType computed_;
  bool accumulate_;
  bool as_computed_;  ///< the result is stored in the type that blocks are computed in
  bool streams_;
  ArrayLayout result_;
  LoopNest nest_;
  Schedule schedule_;
  BlockProgram program_;
  Lanes lanes_;
  Odometer outer_;
  std::int64_t output_parts_ = 1;
  std::int64_t pieces_ = 1;  ///< that the reduced positions are cut into
};

/// A part under way.
class Interpreter::Part {
 public:
  Part(const Interpreter& all, const Arrays& arrays, Workspace workspace)
      : all_(all),
        result_(arrays.result),
        partials_(reinterpret_cast<Accumulators::Partial*>(workspace.shared)),
        stored_(workspace.own + all.program_.workspace_bytes()),
        run_(all.program_, arrays.operands, workspace.own),
        lanes_(all.lanes_),
        outer_(all.outer_) {}

  void run(std::int64_t part) {
    const Positions outputs = all_.outputs_of(part / all_.pieces_);
    const std::int64_t piece = part % all_.pieces_;
    if (!all_.reducer_) {
      map(outputs);
    } else if (all_.schedule_.fold) {
      fold(outputs, piece);
    } else {
      accumulate(outputs, piece);
    }
  }

  /// The pieces of all reductions, in order.
  void combine() {
    Accumulators accumulators = new_accumulators();
    const std::int64_t at_once = all_.schedule_.fold ? 1 : all_.block();
    outer_.seek(0);
    for (std::int64_t begin = 0; begin < all_.outputs(); begin += at_once) {
      const std::int64_t count = std::min(at_once, all_.outputs() - begin);
      if (!all_.schedule_.fold) lanes_.select(begin, static_cast<std::size_t>(count));
      accumulators.start(static_cast<std::size_t>(count));
      add_result(accumulators);
      for (std::int64_t piece = 0; piece < all_.pieces_; ++piece) {
        for (std::int64_t i = 0; i < count; ++i) {
          accumulators.combine(static_cast<std::size_t>(i), partials_[piece * all_.outputs() + begin + i]);
        }
      }
      store_reduced(accumulators);
      if (all_.schedule_.fold) outer_.advance();
    }
  }

 private:
  /// Calls `use` with the begin of every block, after selecting it.
  template <class Use>
  void for_each_block(Positions positions, Use&& use) {
    const std::int64_t block = all_.block();
    for (std::int64_t begin = positions.begin; begin < positions.end; begin += block) {
      lanes_.select(begin, static_cast<std::size_t>(std::min(block, positions.end - begin)));
      use(begin);
    }
  }

  const std::int64_t* outer() const { return outer_.quantities().data(); }

  void map(Positions outputs) {
    for_each_block(outputs, [&](std::int64_t) {
      std::byte* const target = direct_target();
      const BlockValues values = run_.run(lanes_, outer(), target);
      std::visit(
          [&](const auto* computed) {
            if (reinterpret_cast<const std::byte*>(computed) != target) store(computed);
          },
          values);
    });
    if (all_.streams_) finish_streaming();
  }

  void accumulate(Positions outputs, std::int64_t piece) {
    const Positions reduced = all_.reduced_of(piece);
    Accumulators accumulators = new_accumulators();
    for_each_block(outputs, [&](std::int64_t begin) {
      start(accumulators, lanes_.count());
      outer_.seek(reduced.begin);
      for (std::int64_t position = reduced.begin; position < reduced.end; ++position, outer_.advance()) {
        accumulators.add(run_.run(lanes_, outer()), position);
      }
      finish(accumulators, begin, piece);
    });
  }

  void fold(Positions outputs, std::int64_t piece) {
    Accumulators accumulators = new_accumulators();
    outer_.seek(outputs.begin);
    for (std::int64_t element = outputs.begin; element < outputs.end; ++element, outer_.advance()) {
      start(accumulators, 1);
      for_each_block(all_.reduced_of(piece),
                     [&](std::int64_t begin) { accumulators.fold(run_.run(lanes_, outer()), lanes_.count(), begin); });
      finish(accumulators, element, piece);
    }
  }

  Accumulators new_accumulators() const { return {*all_.reducer_, all_.computed_}; }

  /// Over nothing, or over what the result holds; of several pieces, `combine` adds that.
  void start(Accumulators& accumulators, std::size_t count) {
    accumulators.start(count);
    if (all_.pieces_ == 1) add_result(accumulators);
  }
  void add_result(Accumulators& accumulators) {
    if (!all_.accumulate_) return;
    switch (all_.result_.dtype) {
      case DType::f64: return add_result_as<double>(accumulators);
      case DType::f32:
      case DType::bf16:
      case DType::f16: return add_result_as<float>(accumulators);
      default: return add_result_as<std::int64_t>(accumulators);
    }
  }
  template <class T>
  void add_result_as(Accumulators& accumulators) {
    const Reading reading{all_.result_.dtype, all_.result_.aligned, output_quantity, {}, 0};
    auto* const values = reinterpret_cast<T*>(stored_);
    if (all_.schedule_.fold) {
      const ElementSpan element{outer()[output_quantity], 0, 1};
      load_block(reading.dtype, result_, &element, 1, 0, values);
    } else {
      read_block(reading, result_, lanes_, all_.nest_.bases.data(), values);
    }
    accumulators.add(values, 0);
  }

  /// The result, or a piece of it to be combined with others.
  void finish(Accumulators& accumulators, std::int64_t first_output, std::int64_t piece) {
    if (all_.pieces_ == 1) return store_reduced(accumulators);
    const std::size_t count = all_.schedule_.fold ? 1 : lanes_.count();
    for (std::size_t i = 0; i < count; ++i) {
      partials_[piece * all_.outputs() + first_output + static_cast<std::int64_t>(i)] = accumulators.partial(i);
    }
  }
  void store_reduced(Accumulators& accumulators) {
    std::visit(
        [&](const auto* reduced) {
          if (!all_.schedule_.fold) return store(reduced);
          store_block(all_.result_.dtype, reduced, at(outer()[output_quantity]), 0, 1);
        },
        accumulators.finish(all_.reduced()));
  }

  std::byte* at(std::int64_t offset) const {
    return result_ + offset * static_cast<std::int64_t>(size_of(all_.result_.dtype));
  }

  /// Where the block's values may be computed in place: contiguous in the result and stored as they are computed.
  std::byte* direct_target() const {
    const bool contiguous = lanes_.runs().size() == 1 && lanes_.step(output_quantity) == 1;
    if (!all_.as_computed_ || all_.streams_ || !contiguous || !all_.result_.aligned) return nullptr;
    return at(lanes_.at(0, output_quantity));
  }

  template <class T>
  void store(const T* values) {
    for (std::size_t r = 0; r < lanes_.runs().size(); ++r) {
      const Run run = lanes_.runs()[r];
      std::byte* const to = at(lanes_.at(r, output_quantity));
      if (all_.streams_ && lanes_.step(output_quantity) == 1) {
        stream_copy(to, reinterpret_cast<const std::byte*>(values + run.first), run.count * sizeof(T));
      } else {
        store_block(all_.result_.dtype, values + run.first, to, lanes_.step(output_quantity), run.count);
      }
    }
  }

  const Interpreter& all_;
  std::byte* result_;
  Accumulators::Partial* partials_;
  std::byte* stored_;
  BlockRun run_;
  Lanes lanes_;
  Odometer outer_;
};

PreparedKernel prepared(const std::shared_ptr<const Interpreter>& interpreter) {
  PreparedKernel kernel{interpreter->own_bytes(), interpreter->shared_bytes(), {}};
  kernel.stages.push_back({interpreter->output_parts() * interpreter->pieces(),
                           [interpreter](const Arrays& arrays, Workspace workspace, std::int64_t part) {
                             Interpreter::Part(*interpreter, arrays, workspace).run(part);
                           }});
  if (interpreter->pieces() > 1) {
    kernel.stages.push_back({1, [interpreter](const Arrays& arrays, Workspace workspace, std::int64_t) {
                               Interpreter::Part(*interpreter, arrays, workspace).combine();
                             }});
  }
  return kernel;
}

std::string path_of(const KernelSpec& spec, const Schedule& schedule) {
  if (!spec.einsum.reducer) return "one pass over the result";
  return schedule.fold ? "blocks of what is reduced" : "blocks of results";
}

std::variant<Offer, Refusal> offer(const KernelSpec& spec, const LoopNest& nest) {
  Schedule schedule = choose_schedule(spec, nest);
  Offer offer;
  offer.seconds = schedule.seconds;
  offer.path = path_of(spec, schedule);
  const auto interpreter = std::make_shared<const Interpreter>(spec, nest, std::move(schedule));
  offer.own_bytes = interpreter->own_bytes();
  offer.shared_bytes = interpreter->shared_bytes();
  offer.prepare = [interpreter] { return prepared(interpreter); };
  return offer;
}

}  // namespace

KernelInfo blocks_kernel() {
  return {"blocks", "any join and reduction, element-wise chains in one pass", "own loops, libmvec", offer};
}

}  // namespace einrel
