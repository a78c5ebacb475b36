#include <algorithm>
#include <functional>

#include "base/error.h"
#include "einsum/expr/random_number.h"
#include "einsum/expr/scalar_value.h"
#include "kernel/cancel.h"
#include "kernel/elementwise/block_program.h"
#include "kernel/elementwise/reading.h"
#include "machine/processor.h"

namespace einrel {
namespace {

/// A value that is equal in all lanes is computed for so many: what every slot has.
constexpr std::size_t few_lanes = nominal_processor.line_bytes / BlockProgram::bytes_per_lane;

}  // namespace

std::byte* BlockRun::slot_of(std::size_t value) const {
  return workspace_ + static_cast<std::int64_t>(program_.values_[value].slot) * slot_bytes_;
}

BlockRun::BlockRun(const BlockProgram& program, const Lanes& lanes, const std::byte* const* operands,
                   std::byte* workspace)
    : program_(program),
      lanes_(lanes),
      operands_(operands),
      workspace_(workspace),
      slot_bytes_(program.most_lanes() * BlockProgram::bytes_per_lane),
      at_(program.values_.size(), nullptr),
      stored_(program.values_.size(), Stored::all) {
  for (const auto& [value, number] : program_.constants_) {
    std::byte* const bytes = slot_of(value);
    at_[value] = bytes;
    stored_[value] = Stored::all_equal;
    BlockProgram::with_type(program_.values_[value].kind, [&, &constant = number]<class T>() {
      const T spread = std::visit([](auto given) { return static_cast<T>(given); }, constant);
      std::fill_n(reinterpret_cast<T*>(bytes), program_.most_lanes(), spread);
    });
  }
  steps_.reserve(program_.instructions_.size());
  for (const BlockProgram::Instruction& instruction : program_.instructions_) {
    const bool is_result = instruction.result == program_.result_;
    const bool is_equal = !is_result && is_equal_in_lanes(instruction);
    steps_.push_back({slot_of(instruction.result), is_equal});
    stored_[instruction.result] = is_equal ? Stored::few : Stored::all;
  }
}

/// Carries out one instruction.
struct BlockRun::Executor {
  BlockRun& block;
  const BlockProgram::Instruction& instruction;
  std::byte* to;
  const Lanes& lanes;
  std::size_t count;  ///< of lanes: all, or a few where the result is equal in all
  std::size_t all;
  const std::int64_t* outer;

  BlockProgram::Kind result_kind() const { return block.program_.values_[instruction.result].kind; }
  BlockProgram::Kind argument_kind(std::size_t i) const {
    return block.program_.values_[instruction.arguments[i]].kind;
  }
  template <class T>
  T* result() const {
    return reinterpret_cast<T*>(to);
  }
  template <class T>
  const T* argument(std::size_t i) const {
    const std::size_t value = instruction.arguments[i];
    if (count == all) block.complete(value, count);
    return reinterpret_cast<const T*>(block.at_[value]);
  }
  bool is_same(std::size_t i) const {
    const Stored stored = block.stored_[instruction.arguments[i]];
    return stored == Stored::few || stored == Stored::all_equal;
  }
  /// What `use` returns for the argument: one number, if that is what it is in all lanes, or where its lanes lie.
  template <class T, class Use>
  void with_argument(std::size_t i, Use use) const {
    const std::size_t value = instruction.arguments[i];
    if (is_same(i)) return use(*reinterpret_cast<const T*>(block.at_[value]));
    if constexpr (std::is_same_v<T, float>) {
      if (block.stored_[value] == Stored::narrow) return use(reinterpret_cast<const BFloat16*>(block.at_[value]));
    }
    use(argument<T>(i));
  }

  /// bf16 stays where it lies for functions that can read it there; the result of a program does not.
  const BFloat16* narrow_in_place(const Reading& reading, const std::byte* data) const {
    if (instruction.result == block.program_.result_) return nullptr;
    return in_place<BFloat16>(reading, data, lanes, outer);
  }
  void operator()(const BlockProgram::Load& load) const {
    const Reading& reading = block.program_.nest_.readings[load.operand];
    const std::byte* const data = block.operands_[load.operand];
    BlockProgram::with_type(result_kind(), [&]<class T>() {
      if (count != all) {
        const ElementSpan span{lanes.at(0, reading.quantity) + outer[reading.quantity], 0, count};
        return load_block(reading.dtype, data, &span, 1, 0, result<T>());
      }
      const std::byte* there = nullptr;  // where any byte but 0 is true, bools are not
      if constexpr (!std::is_same_v<T, Truth>) {
        there = reinterpret_cast<const std::byte*>(in_place<T>(reading, data, lanes, outer));
      }
      if (there != nullptr) {
        block.at_[instruction.result] = there;
      } else if (const BFloat16* const narrow = narrow_in_place(reading, data)) {
        block.at_[instruction.result] = reinterpret_cast<const std::byte*>(narrow);
        block.stored_[instruction.result] = Stored::narrow;
      } else {
        read_block(reading, data, lanes, outer, result<T>());
      }
    });
  }
  void operator()(const BlockProgram::Ramp& ramp) const {
    const std::size_t quantity = block.program_.nest_.label_values[ramp.label];
    if (count != all) {
      return ramp_block(lanes.at(0, quantity) + outer[quantity], 0, result<std::int64_t>(), count);
    }
    auto* z = result<std::int64_t>();
    for (std::size_t p = 0; p < lanes.patches(); ++p) {
      std::int64_t row = lanes.at(p, quantity) + outer[quantity];
      for (std::size_t r = 0; r < lanes.rows(); ++r, z += lanes.columns(), row += lanes.row_step(quantity)) {
        ramp_block(row, lanes.step(quantity), z, lanes.columns());
      }
    }
  }
  void operator()(const ApplyUnary& unary) const {
    BlockProgram::with_type(result_kind(), [&]<class T>() {
      if constexpr (std::is_same_v<T, Truth>) {
        throw Bug("a function of numbers applied to a truth");
      } else {
        apply_block(unary.function, argument<T>(0), result<T>(), count);
      }
    });
  }
  void operator()(const ApplyBinary& binary) const {
    BlockProgram::with_type(argument_kind(0), [&]<class T>() {
      if (is_comparison(binary.function)) {
        compare_block(binary.function, argument<T>(0), argument<T>(1), result<Truth>(), count);
      } else {
        apply<T>(binary.function);
      }
    });
  }
  template <class T>
  void apply(BinaryFunction function) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (function != BinaryFunction::power && !(is_same(0) && is_same(1))) {
        return with_argument<T>(0, [&]<class A>(A a) {
          with_argument<T>(1, [&]<class B>(B b) {
            if constexpr (!std::is_same_v<A, T> || !std::is_same_v<B, T>) {
              apply_block(function, a, b, result<T>(), count);
            }
          });
        });
      }
    }
    apply_block(function, argument<T>(0), argument<T>(1), result<T>(), count);
  }
  void operator()(const ApplyWhere&) const {
    BlockProgram::with_type(result_kind(), [&]<class T>() {
      select_block(argument<Truth>(0), argument<T>(1), argument<T>(2), result<T>(), count);
    });
  }
  void operator()(const BlockProgram::ConvertTo& convert) const {
    BlockProgram::with_type(argument_kind(0), [&]<class From>() {
      BlockProgram::with_type(result_kind(),
                              [&]<class To>() { convert_block(convert.type, argument<From>(0), result<To>(), count); });
    });
  }
  void operator()(const ApplyRandom& random) const {
    const auto* const seed = argument<std::int64_t>(0);
    const auto* const position = argument<std::int64_t>(1);
    const auto* const iteration = argument<std::int64_t>(2);
    BlockProgram::with_type(result_kind(), [&]<class T>() {
      constexpr bool is_single = std::is_same_v<T, float>;
      T* const z = result<T>();
      for (std::size_t i = 0; i < count; ++i) {
        const RandomPlace place{seed[i], position[i], iteration[i], random.stream};
        z[i] = static_cast<T>(random_number(random.function, place, is_single));
      }
    });
  }
  void operator()(const CheckRange& check) const {
    const auto* const value = argument<std::int64_t>(0);
    const auto* const position = argument<std::int64_t>(1);
    auto* const z = result<std::int64_t>();
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_in_range = value[i] >= 0 && value[i] < check.extent;
      z[i] = is_in_range ? value[i] : checked_range(check, value[i], position[i]);
    }
  }
  void operator()(const Round& round) const {
    BlockProgram::with_type(argument_kind(0), [&]<class From>() {
      if constexpr (std::is_same_v<From, Truth>) {
        throw Bug("a truth rounded");
      } else {
        round_block(round.to, argument<From>(0), result<float>(), count);
      }
    });
  }
};

bool BlockRun::is_equal_in_lanes(const BlockProgram::Instruction& instruction) const {
  const auto is_fixed = [&](std::size_t quantity) { return lanes_.is_even(quantity) && lanes_.step(quantity) == 0; };
  if (const auto* const load = std::get_if<BlockProgram::Load>(&instruction.op)) {
    const Reading& reading = program_.nest_.readings[load->operand];
    return reading.guards.empty() && is_fixed(reading.quantity);
  }
  if (const auto* const ramp = std::get_if<BlockProgram::Ramp>(&instruction.op)) {
    return is_fixed(program_.nest_.label_values[ramp->label]);
  }
  const auto* const arguments = instruction.arguments.data();
  return std::all_of(arguments, arguments + instruction.argument_count,
                     [&](std::size_t value) { return stored_[value] != Stored::all; });
}

/// Stores all lanes of a value, as they are computed.
void BlockRun::complete(std::size_t value, std::size_t lanes) {
  if (stored_[value] == Stored::narrow) {
    auto* const values = reinterpret_cast<float*>(slot_of(value));
    const ElementSpan span{0, 0, lanes};
    load_block(DType::bf16, at_[value], &span, 1, 1, values);
    at_[value] = slot_of(value);
    stored_[value] = Stored::all;
  }
  if (stored_[value] != Stored::few) return;
  stored_[value] = Stored::all_equal;
  BlockProgram::with_type(program_.values_[value].kind, [&]<class T>() {
    auto* const values = reinterpret_cast<T*>(slot_of(value));
    std::fill_n(values, lanes, values[0]);
  });
}

const BlockValues& BlockRun::run(const std::int64_t* outer, std::byte* target) {
  throw_if_cancelled();
  const std::vector<BlockProgram::Instruction>& instructions = program_.instructions_;
  const std::size_t lanes = lanes_.count();
  const bool has_more = lanes > few_lanes;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const std::size_t result = instructions[i].result;
    const bool is_last = i + 1 == instructions.size() && result == program_.result_;
    std::byte* const to = is_last && target != nullptr ? target : steps_[i].slot;
    at_[result] = to;
    const bool is_equal = has_more && steps_[i].is_equal;
    stored_[result] = is_equal ? Stored::few : Stored::all;
    std::visit(Executor{*this, instructions[i], to, lanes_, is_equal ? few_lanes : lanes, lanes, outer},
               instructions[i].op);
  }
  const std::byte* const result = at_[program_.result_];
  BlockProgram::with_type(program_.values_[program_.result_].kind,
                          [&]<class T>() { values_ = reinterpret_cast<const T*>(result); });
  return values_;
}

BlockRun::Coming BlockRun::find_coming() const {
  Coming coming;
  std::size_t value = 0;  // of the last one
  std::size_t loads = 0;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const BlockProgram::Instruction& instruction = program_.instructions_[i];
    const auto* const load = std::get_if<BlockProgram::Load>(&instruction.op);
    if (load == nullptr || steps_[i].is_equal) continue;
    ++loads;
    const Reading& reading = program_.nest_.readings[load->operand];
    const std::size_t q = reading.quantity;
    if (!is_read_once(reading, program_.nest_.loops) || !lanes_.is_even(q) || lanes_.step(q) != 1) continue;
    coming.operands.push_back({operands_[load->operand], q, size_of(reading.dtype), nullptr});
    value = instruction.result;
  }
  coming.is_alone = loads == 1;
  // An approximation takes so long that the processor brings a single operand meanwhile.
  if (coming.operands.size() == 1 && program_.is_approximated_of(value)) coming.operands.clear();
  return coming;
}

void BlockRun::fetch(const std::int64_t* outer) {
  if (!coming_) coming_ = find_coming();
  if (coming_->operands.empty()) return;
  const std::size_t lanes = lanes_.count();
  const bool asks = !coming_->is_alone;
  std::size_t widest = 1;
  for (Coming::Operand& operand : coming_->operands) {
    const std::int64_t first = add_wrapping(lanes_.at(0, operand.quantity), outer[operand.quantity]);
    operand.from = operand.data + first * static_cast<std::int64_t>(operand.size);
    operand.was_asked_for = operand.from == operand.asked_for;
    operand.asked_for = asks ? operand.from + lanes * operand.size : nullptr;
    widest = std::max(widest, operand.size);
  }
  const std::size_t lanes_per_line = nominal_processor.line_bytes / widest;
  for (std::size_t lane = 0; lane < lanes; lane += lanes_per_line) {
    for (const Coming::Operand& operand : coming_->operands) {
      if (!operand.was_asked_for) {
        const volatile std::byte* const element = operand.from + lane * operand.size;
        [[maybe_unused]] const std::byte touched = *element;
      }
      constexpr int second_level = 2;
      if (asks) __builtin_prefetch(operand.asked_for + lane * operand.size, 0, second_level);
    }
  }
}

bool BlockRun::is_in_place() const {
  const std::less<> before;
  const std::byte* const values = at_[program_.result_];
  return before(values, workspace_) || !before(values, workspace_ + program_.workspace_bytes());
}

}  // namespace einrel
