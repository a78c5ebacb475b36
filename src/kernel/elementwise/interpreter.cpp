#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "kernel/elementwise/accumulate.h"
#include "kernel/elementwise/block_program.h"
#include "kernel/elementwise/fetching.h"
#include "kernel/elementwise/lanes.h"
#include "kernel/elementwise/reading.h"
#include "kernel/elementwise/schedule.h"
#include "kernel/elementwise/streaming.h"
#include "kernel/kernels.h"
#include "machine/seconds.h"

namespace einrel {
namespace {

/// A half-open range.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The i-th of `pieces` nearly equal ranges of [0, total).
Range piece_of(std::int64_t total, std::int64_t pieces, std::int64_t i) {
  const auto end_of = [&](std::int64_t piece) { return total / pieces * piece + total % pieces * piece / pieces; };
  return {end_of(i), end_of(i + 1)};
}

std::vector<Loop> joined(std::vector<Loop> loops, const std::vector<Loop>& more) {
  loops.insert(loops.end(), more.begin(), more.end());
  return loops;
}

bool stored_as_computed(const KernelSpec& spec) {
  const DType dtype = spec.result.dtype;
  const bool is_block_type = dtype != DType::i32 && !is_narrow(dtype);
  return is_block_type && dtype == spec.einsum.body.type();
}

/// What reduces them: of bools the largest is whether any is true, the least whether all are.
std::optional<Reducer> reducer_of(const EinSum& einsum) {
  if (einsum.body.type() != DType::boolean) return einsum.reducer;
  if (einsum.reducer == Reducer::max) return Reducer::any;
  return einsum.reducer == Reducer::min ? Reducer::all : einsum.reducer;
}

/// The type of the values of blocks: bools that are counted or compared are integers.
DType computed_type(const EinSum& einsum) {
  const auto reducer = reducer_of(einsum);
  const bool are_truths = !reducer || result_of(*reducer) == ReducedAs::truth;
  return einsum.body.type() == DType::boolean && !are_truths ? DType::i64 : einsum.body.type();
}

/// One EinSum made ready. Its results come in units: blocks of results or of rows, or one position of outer_results;
/// what is reduced into a unit comes in steps.
class Interpreter {
 public:
  Interpreter(const KernelSpec& spec, LoopNest nest)
      : reducer_(reducer_of(spec.einsum)),
        computed_(computed_type(spec.einsum)),
        computes_all_(may_throw(spec.einsum.body)),
        accumulate_(spec.accumulate),
        as_computed_(stored_as_computed(spec)),
        streams_(spec.large_result && !reducer_),
        result_(spec.result),
        nest_(std::move(nest)),
        program_(spec.einsum.body, computed_, nest_, spec.scalars),
        schedule_(choose_schedule(spec, nest_, most_lanes())),
        lanes_(new_lanes(spec.einsum.body)),
        reduced_count_(position_count(schedule_.outer_reduced)),
        outer_(joined(schedule_.outer_results, schedule_.outer_reduced), nest_.bases) {
    cut();
    if (streams_) fetching_ = std::make_unique<FetchingChoice>();
  }
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  const Schedule& schedule() const { return schedule_; }
  std::int64_t own_bytes() const {
    const std::int64_t results = std::max(program_.most_lanes(), most_unit_outputs());
    return program_.workspace_bytes() + results * static_cast<std::int64_t>(sizeof(double));
  }
  std::int64_t shared_bytes() const {
    return pieces_ == 1 ? 0 : pieces_ * outputs() * static_cast<std::int64_t>(sizeof(Accumulators::Partial));
  }
  std::int64_t output_parts() const { return output_parts_; }
  std::int64_t pieces() const { return pieces_; }

  class Part;

 private:
  using Kind = Schedule::Kind;

  /// Parts of a tenth of a millisecond and more: over the output, and where that gives only a few, over what is
  /// reduced as well.
  void cut() {
    constexpr std::int64_t enough = 8;
    constexpr std::int64_t most_partials = 32768;
    const std::int64_t wanted = parts_worth(schedule_.seconds, looped_part_seconds);
    output_parts_ = std::clamp(units() / units_at_once(), std::int64_t{1}, wanted);
    if (!reducer_ || output_parts_ >= enough || outputs() > most_partials / enough) return;
    pieces_ =
        std::clamp(std::min({wanted / output_parts_, steps(), most_partials / outputs()}), std::int64_t{1}, wanted);
  }

  /// Of a block. Where several operands come in from memory and the result goes out, shorter ones are faster: A * B + C
  /// takes 12 ms in blocks of 512 (16M f32) and 256 (8M f64), 15 and 16 in blocks twice as long.
  std::int64_t most_lanes() const {
    constexpr std::size_t most_bytes = 2048;
    std::size_t operands = 0;
    std::size_t widest = 1;
    for (const Reading& reading : nest_.readings) {
      if (!is_read_once(reading, nest_.loops)) continue;
      ++operands;
      widest = std::max(widest, size_of(reading.dtype));
    }
    const std::int64_t most = program_.most_lanes();
    return streams_ && operands > 1 ? std::min(most, static_cast<std::int64_t>(most_bytes / widest)) : most;
  }

  Lanes new_lanes(const ScalarExpr& body) const {
    const bool folds = schedule_.kind == Kind::fold || schedule_.kind == Kind::rows;
    const bool adds = schedule_.kind == Kind::results && reducer_;
    // Folds look once more through a block with a new extreme.
    const bool searches = finds_position(reducer_);
    const auto* const operand = body.steps.size() == 1 ? std::get_if<OperandValue>(&body.steps[0].op) : nullptr;
    // Sums in double fill the first-level cache; what is added to them comes from the second.
    constexpr auto most_sums = static_cast<std::int64_t>(nominal_processor.first_cache / sizeof(double));
    if ((folds || adds) && !searches && operand != nullptr) {
      Lanes lanes(schedule_.lanes, nest_.bases.size(), adds ? most_sums : most_lanes_in_place);
      const Reading& reading = nest_.readings[operand->operand];
      const bool as_stored = body.type() == reading.dtype;
      if (as_stored && is_in_place(reading, lanes) && lanes.step(reading.quantity) == 1) return lanes;
    }
    return {schedule_.lanes, nest_.bases.size(), most_lanes()};
  }

  bool by_result() const { return schedule_.is_by_result(); }
  /// The innermost loop of a block of rows, which is reduced; of columns, which is not.
  std::int64_t inner_extent() const { return schedule_.lanes.back().extent; }
  /// Of the reduction to one result.
  std::int64_t values_per_result() const {
    std::int64_t count = reduced_count_;
    for (const Loop& loop : schedule_.lanes) count *= loop.reduced ? loop.extent : 1;
    return count;
  }
  std::int64_t units() const { return by_result() ? outer_.count() / reduced_count_ : lanes_.blocks(); }
  std::int64_t steps() const { return by_result() ? reduced_count_ * lanes_.blocks() : reduced_count_; }
  std::int64_t outputs() const { return first_output(units() - 1) + last_unit_outputs(); }
  std::int64_t first_output(std::int64_t unit) const {
    switch (schedule_.kind) {
      case Kind::map:
      case Kind::results: return lanes_.begin_of(unit);
      case Kind::rows: return lanes_.begin_of(unit) / inner_extent();
      case Kind::columns: return unit * inner_extent();
      case Kind::fold: return unit;
    }
    return 0;
  }
  std::int64_t last_unit_outputs() const {
    switch (schedule_.kind) {
      case Kind::map:
      case Kind::results: return lanes_.total() - lanes_.begin_of(units() - 1);
      case Kind::rows: return (lanes_.total() - lanes_.begin_of(units() - 1)) / inner_extent();
      case Kind::columns: return inner_extent();
      case Kind::fold: return 1;
    }
    return 0;
  }
  /// How many results a unit has at most.
  std::int64_t most_unit_outputs() const {
    switch (schedule_.kind) {
      case Kind::map:
      case Kind::results: return lanes_.longest();
      case Kind::rows: return lanes_.longest() / inner_extent();
      case Kind::columns: return inner_extent();
      case Kind::fold: return 1;
    }
    return 0;
  }
  /// Units whose reductions are under way at once.
  std::int64_t units_at_once() const {
    return std::clamp(schedule_.results_together / most_unit_outputs(), std::int64_t{1}, units());
  }

  std::optional<Reducer> reducer_;
  DType computed_;
  bool computes_all_;  ///< values that no longer count, too
  bool accumulate_;
  bool as_computed_;  ///< the result is stored in the type that blocks are computed in
  bool streams_;
  ArrayLayout result_;
  LoopNest nest_;
  BlockProgram program_;
  Schedule schedule_;
  Lanes lanes_;
  std::int64_t reduced_count_;  ///< positions of outer_reduced
  Odometer outer_;
  std::int64_t output_parts_ = 1;
  std::int64_t pieces_ = 1;  ///< that the steps are cut into
  /// Only where results stream. The one thing that changes while parts run; the results do not depend on it.
  std::unique_ptr<FetchingChoice> fetching_;
};

/// A part under way.
class Interpreter::Part {
 public:
  Part(const Interpreter& all, const Arrays& arrays, Workspace workspace)
      : all_(all),
        result_(arrays.result),
        partials_(reinterpret_cast<Accumulators::Partial*>(workspace.shared)),
        stored_(workspace.own + all.program_.workspace_bytes()),
        lanes_(all.lanes_),
        run_(all.program_, lanes_, arrays.operands, workspace.own),
        outer_(all.outer_) {}

  void run(std::int64_t part) {
    const Range units = piece_of(all_.units(), all_.output_parts_, part / all_.pieces_);
    if (!all_.reducer_) return map(units);
    const std::int64_t piece = part % all_.pieces_;
    const Range steps = piece_of(all_.steps(), all_.pieces_, piece);
    Accumulators accumulators = new_accumulators(all_.units_at_once());
    for (std::int64_t unit = units.begin; unit < units.end; unit += all_.units_at_once()) {
      const Range together{unit, std::min(unit + all_.units_at_once(), units.end)};
      start(accumulators, together, all_.pieces_ == 1);
      all_.by_result() ? reduce_one(accumulators, unit, steps) : reduce_together(accumulators, together, steps);
      finish(accumulators, together, piece);
    }
  }

  /// The pieces of all reductions, in order.
  void combine() {
    Accumulators accumulators = new_accumulators(1);
    for (std::int64_t unit = 0; unit < all_.units(); ++unit) {
      start(accumulators, {unit, unit + 1}, true);
      const std::int64_t first = all_.first_output(unit);
      for (std::int64_t piece = 0; piece < all_.pieces_; ++piece) {
        accumulators.combine({0, result_count()}, partials_ + piece * all_.outputs() + first);
      }
      store_reduced(accumulators, {0, result_count()});
    }
  }

 private:
  const std::int64_t* outer() const { return outer_.quantities().data(); }

  void map(Range blocks) {
    if (!all_.streams_) return map(blocks, false);
    const bool fetches = all_.fetching_->fetches();
    const auto start = std::chrono::steady_clock::now();
    map(blocks, fetches);
    finish_streaming();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    all_.fetching_->record(fetches, took.count() / static_cast<double>(blocks.end - blocks.begin));
  }
  void map(Range blocks, bool fetches) {
    for (std::int64_t block = blocks.begin; block < blocks.end; ++block) {
      lanes_.select(block);
      std::byte* const target = direct_target();
      if (fetches) run_.fetch(outer());
      const BlockValues& values = run_.run(outer(), target);
      std::visit(
          [&](const auto* computed) {
            if (reinterpret_cast<const std::byte*>(computed) != target) store(computed);
          },
          values);
    }
  }

  /// For every position of what is reduced outside of blocks, all these blocks.
  void reduce_together(Accumulators& accumulators, Range blocks, Range positions) {
    outer_.seek(positions.begin);
    if (all_.schedule_.kind == Kind::results && positions.end - positions.begin > 1 && is_in_place(blocks.begin)) {
      return reduce_rows(accumulators, blocks, positions);
    }
    for (std::int64_t position = positions.begin; position < positions.end; ++position, outer_.advance()) {
      Accumulators::Range into;
      for (std::int64_t block = blocks.begin; block < blocks.end; ++block, into.first += into.count) {
        lanes_.select(block);
        into.count = result_count();
        const BlockValues& values = run_.run(outer());
        if (all_.schedule_.kind == Kind::results) {
          accumulators.add(values, into, 1, position);
        } else {
          accumulators.fold(values, into, lanes_.columns(), position * all_.inner_extent());
        }
      }
    }
  }

  /// Whether a block is an operand's where it lies.
  bool is_in_place(std::int64_t block) {
    lanes_.select(block);
    run_.run(outer());
    return run_.is_in_place();
  }

  /// The same of an operand where it lies, several positions at once.
  void reduce_rows(Accumulators& accumulators, Range blocks, Range positions) {
    constexpr std::int64_t most = Accumulators::most_rows;
    std::array<std::vector<std::int64_t>, Accumulators::most_rows> outers;
    for (std::int64_t first = positions.begin; first < positions.end; first += most) {
      const auto count = static_cast<std::size_t>(std::min(most, positions.end - first));
      for (std::size_t i = 0; i < count; ++i, outer_.advance()) outers[i] = outer_.quantities();
      Accumulators::Range into;
      for (std::int64_t block = blocks.begin; block < blocks.end; ++block, into.first += into.count) {
        lanes_.select(block);
        into.count = result_count();
        add_rows(accumulators, std::span(outers).first(count), into, first);
      }
    }
  }
  /// One block, at several positions from `first` on. Where padding is read, values do not stay.
  void add_rows(Accumulators& accumulators, std::span<const std::vector<std::int64_t>> outers, Accumulators::Range into,
                std::int64_t first) {
    std::array<BlockValues, Accumulators::most_rows> rows;
    std::size_t kept = 0;
    const auto add_kept = [&](std::int64_t end) {
      if (kept > 0) accumulators.add(std::span(rows).first(kept), into, end - static_cast<std::int64_t>(kept));
      kept = 0;
    };
    std::int64_t position = first;
    for (const std::vector<std::int64_t>& at : outers) {
      const BlockValues& values = run_.run(at.data());
      if (run_.is_in_place()) {
        rows[kept++] = values;
      } else {
        add_kept(position);
        accumulators.add(values, into, 1, position);
      }
      ++position;
    }
    add_kept(position);
  }

  /// Blocks of what is reduced into the results of one position of outer_results.
  void reduce_one(Accumulators& accumulators, std::int64_t unit, Range steps) {
    const std::int64_t blocks = lanes_.blocks();
    std::int64_t block = steps.begin % blocks;
    std::int64_t position = steps.begin / blocks;
    outer_.seek(unit * all_.reduced_count_ + position);
    for (std::int64_t step = steps.begin; step < steps.end; ++step) {
      if (!all_.computes_all_ && accumulators.is_settled({0, result_count()})) return;
      lanes_.select(block);
      reduce_block(accumulators, position * lanes_.total() + lanes_.begin_of(block));
      if (++block < blocks) continue;
      block = 0;
      ++position;
      outer_.advance();
    }
  }
  void reduce_block(Accumulators& accumulators, std::int64_t first_lane) {
    const BlockValues& values = run_.run(outer());
    if (all_.schedule_.kind == Kind::columns) {
      const Accumulators::Range all{0, lanes_.columns()};
      accumulators.add(values, all, lanes_.rows(), first_lane / all_.inner_extent());
    } else {
      accumulators.fold(values, {0, 1}, lanes_.count(), first_lane);
    }
  }

  Accumulators new_accumulators(std::int64_t units) const {
    return {*all_.reducer_, all_.computed_, static_cast<std::size_t>(units * all_.most_unit_outputs())};
  }

  /// Brings what results depend on to a unit.
  void select(std::int64_t unit) {
    if (all_.by_result()) {
      lanes_.select(0);
      outer_.seek(unit * all_.reduced_count_);
    } else {
      lanes_.select(unit);
      outer_.seek(0);
    }
  }
  /// Of the unit that is selected.
  std::size_t result_count() const {
    switch (all_.schedule_.kind) {
      case Kind::map:
      case Kind::results: return lanes_.count();
      case Kind::rows: return lanes_.count() / lanes_.columns();
      case Kind::columns: return lanes_.columns();
      case Kind::fold: return 1;
    }
    return 0;
  }
  /// Calls `use` for spans of the results of the unit that is selected, with the step between their elements.
  template <class Use>
  void for_each_span(Use use) const {
    constexpr std::size_t q = output_quantity;
    const std::size_t patches = lanes_.patches();
    const std::size_t columns = lanes_.columns();
    switch (all_.schedule_.kind) {
      case Kind::map:
      case Kind::results: break;
      case Kind::rows:
        for (std::size_t p = 0; p < patches; ++p) {
          const std::int64_t offset = lanes_.at(p, q) + outer()[q];
          use(ElementSpan{offset, p * lanes_.rows(), lanes_.rows()}, lanes_.row_step(q));
        }
        return;
      case Kind::columns: return use(ElementSpan{lanes_.at(0, q) + outer()[q], 0, columns}, lanes_.step(q));
      case Kind::fold: return use(ElementSpan{outer()[q], 0, 1}, 0);
    }
    if (lanes_.is_even(q)) return use(ElementSpan{lanes_.at(0, q) + outer()[q], 0, lanes_.count()}, lanes_.step(q));
    for (std::size_t p = 0, first = 0; p < patches; ++p) {
      std::int64_t offset = lanes_.at(p, q) + outer()[q];
      for (std::size_t r = 0; r < lanes_.rows(); ++r, first += columns, offset += lanes_.row_step(q)) {
        use(ElementSpan{offset, first, columns}, lanes_.step(q));
      }
    }
  }

  /// Over nothing, or over what the result holds; of several pieces, `combine` adds that.
  void start(Accumulators& accumulators, Range units, bool onto_result) {
    Accumulators::Range into;
    for (std::int64_t unit = units.begin; unit < units.end; ++unit, into.first += into.count) {
      select(unit);
      into.count = result_count();
      accumulators.start(into);
      if (onto_result && all_.accumulate_) add_result(accumulators, into);
    }
  }
  void add_result(Accumulators& accumulators, Accumulators::Range into) {
    switch (all_.result_.dtype) {
      case DType::f64: return add_result_as<double>(accumulators, into);
      case DType::f32:
      case DType::bf16:
      case DType::f16: return add_result_as<float>(accumulators, into);
      case DType::boolean: return add_result_as<Truth>(accumulators, into);
      default: return add_result_as<std::int64_t>(accumulators, into);
    }
  }
  template <class T>
  void add_result_as(Accumulators& accumulators, Accumulators::Range into) {
    auto* const values = reinterpret_cast<T*>(stored_);
    for_each_span([&](const ElementSpan& span, std::int64_t step) {
      load_block(all_.result_.dtype, result_, &span, 1, step, values);
    });
    accumulators.add(values, into, 1, 0);
  }

  /// The results, or pieces of them to be combined with others.
  void finish(Accumulators& accumulators, Range units, std::int64_t piece) {
    Accumulators::Range lanes;
    for (std::int64_t unit = units.begin; unit < units.end; ++unit, lanes.first += lanes.count) {
      select(unit);
      lanes.count = result_count();
      if (all_.pieces_ == 1) {
        store_reduced(accumulators, lanes);
        continue;
      }
      accumulators.store_partials(lanes, partials_ + piece * all_.outputs() + all_.first_output(unit));
    }
  }
  void store_reduced(Accumulators& accumulators, Accumulators::Range lanes) {
    std::visit([&](const auto* reduced) { store(reduced); }, accumulators.finish(lanes, all_.values_per_result()));
  }

  std::byte* at(std::int64_t offset) const {
    return result_ + offset * static_cast<std::int64_t>(size_of(all_.result_.dtype));
  }

  /// Where the block's values may be computed in place: contiguous in the result and stored as they are computed.
  std::byte* direct_target() const {
    const bool contiguous = lanes_.is_even(output_quantity) && lanes_.step(output_quantity) == 1;
    if (!all_.as_computed_ || all_.streams_ || !contiguous || !all_.result_.aligned) return nullptr;
    return at(lanes_.at(0, output_quantity) + outer()[output_quantity]);
  }

  template <class T>
  void store(const T* values) {
    for_each_span([&](const ElementSpan& span, std::int64_t step) {
      const DType dtype = all_.result_.dtype;
      std::byte* const to = at(span.offset);
      if (!all_.streams_ || step != 1) return store_block(dtype, values + span.first, to, step, span.count);
      const auto* from = reinterpret_cast<const std::byte*>(values + span.first);
      if (!all_.as_computed_) {
        store_block(dtype, values + span.first, stored_, 1, span.count);
        from = stored_;
      }
      stream_copy(to, from, span.count * size_of(dtype));
    });
  }

  const Interpreter& all_;
  std::byte* result_;
  Accumulators::Partial* partials_;
  std::byte* stored_;
  Lanes lanes_;
  BlockRun run_;
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

std::string path_of(const Schedule& schedule) {
  switch (schedule.kind) {
    case Schedule::Kind::map: return "one pass over the result";
    case Schedule::Kind::results: return "blocks of results";
    case Schedule::Kind::rows: return "blocks of rows";
    case Schedule::Kind::columns: return "blocks of columns";
    case Schedule::Kind::fold: return "blocks of what is reduced";
  }
  return "";
}

std::variant<Offer, Refusal> offer(const KernelSpec& spec, const LoopNest& nest) {
  const auto interpreter = std::make_shared<const Interpreter>(spec, nest);
  Offer offer;
  offer.seconds = interpreter->schedule().seconds;
  offer.path = path_of(interpreter->schedule());
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
