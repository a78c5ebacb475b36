#include "kernel/elementwise/block_program.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "base/error.h"
#include "einsum/expr/random_number.h"
#include "einsum/expr/scalar_value.h"
#include "kernel/cancel.h"
#include "kernel/elementwise/block_math.h"
#include "kernel/elementwise/reading.h"
#include "kernel/kernel.h"
#include "machine/processor.h"
#include "tensor/convert.h"

namespace einrel {
namespace {

/// Whether the function can leave its type's range, so that its result must be brought back.
bool may_leave_type(UnaryFunction function) { return !has(function, Trait::stays_in_type); }
bool may_leave_type(BinaryFunction function) {
  return !is_comparison(function) && einrel::kind_of(function) != BinaryKind::extreme;
}

/// Of the widest values.
constexpr std::int64_t bytes_per_lane = sizeof(double);

/// What fits, in whole cache lines, so that two slots do not share one. Where values of 8 bytes are among them, half of
/// lanes_per_block, for the first-level cache.
std::int64_t lanes_for(std::size_t slots, bool wide) {
  constexpr std::int64_t lanes_per_line = nominal_processor.line_bytes / bytes_per_lane;
  constexpr std::int64_t budget = most_workspace_bytes / 2 / bytes_per_lane;
  const std::int64_t fitting = budget / std::max(static_cast<std::int64_t>(slots), std::int64_t{1});
  constexpr auto most = static_cast<std::int64_t>(lanes_per_block);
  return std::clamp(fitting / lanes_per_line * lanes_per_line, lanes_per_line, wide ? most / 2 : most);
}

/// A value that is equal in all lanes is computed for so many: what every slot has.
constexpr std::size_t few_lanes = nominal_processor.line_bytes / bytes_per_lane;

/// The type that elements of an operand have once loaded.
DType loaded_type(DType stored) { return is_narrow(stored) ? DType::f32 : stored; }

}  // namespace

template <class Function>
decltype(auto) BlockProgram::with_type(Kind kind, Function&& function) {
  switch (kind) {
    case Kind::float32: return function.template operator()<float>();
    case Kind::float64: return function.template operator()<double>();
    case Kind::integer: return function.template operator()<std::int64_t>();
  }
  throw Bug("a kind of value outside its enumeration");
}

/// Turns stack steps into instructions whose results are numbered values, then gives every value a slot.
class BlockProgram::Compiler {
 public:
  Compiler(BlockProgram& program, const ScalarBindings& scalars) : program_(program), scalars_(scalars) {}

  void compile(const ScalarExpr& body) {
    for (const ScalarStep& step : body.steps) {
      const Typed result = std::visit([&](const auto& op) { return compile_step(op, step.type); }, step.op);
      stack_.push_back({as_type(result, step.type), step.type});
    }
    invariant(stack_.size() == 1, "a body leaves one value");
    program_.result_ = stack_.back().value;
    assign_slots();
  }

 private:
  /// A value and the type that its numbers are known to fit; DType::i64 after arithmetic on i32 or bool.
  struct Typed {
    std::size_t value = 0;
    DType type = DType::f32;
  };

  static Kind kind_of(DType type) {
    switch (type) {
      case DType::f32: return Kind::float32;
      case DType::f64: return Kind::float64;
      case DType::i32:
      case DType::i64:
      case DType::boolean: return Kind::integer;
      case DType::bf16:
      case DType::f16: break;
    }
    throw Bug("a step computes in a type that is for storage only");
  }

  Typed pop() {
    invariant(!stack_.empty(), "a step pops more than was pushed");
    const Typed top = stack_.back();
    stack_.pop_back();
    return top;
  }

  std::size_t new_value(Kind kind) {
    program_.values_.push_back({kind, 0, 0, false});
    return program_.values_.size() - 1;
  }

  template <class Op>
  std::size_t emit(Op op, Kind kind, std::initializer_list<std::size_t> arguments) {
    Instruction instruction{op, new_value(kind), {}, arguments.size()};
    std::copy(arguments.begin(), arguments.end(), instruction.arguments.begin());
    program_.instructions_.push_back(instruction);
    program_.values_.back().is_loaded = std::is_same_v<Op, Load>;
    return instruction.result;
  }

  std::size_t as_type(Typed from, DType to) {
    if (from.type == to || (to == DType::i64 && kind_of(from.type) == Kind::integer)) return from.value;
    if (to == DType::i32 && from.type == DType::boolean) return from.value;
    return emit(ConvertTo{to}, kind_of(to), {from.value});
  }

  Kind kind(Typed typed) const { return program_.values_[typed.value].kind; }

  Typed compile_step(const OperandValue& op, DType) {
    const DType type = loaded_type(program_.nest_.readings[op.operand].dtype);
    const auto [known, added] = operands_.try_emplace(op.operand, 0);
    if (added) known->second = emit(Load{op.operand}, kind_of(type), {});
    return {known->second, type};
  }
  Typed compile_step(const LabelValue& op, DType) {
    const auto [known, added] = labels_.try_emplace(op.label, 0);
    if (added) known->second = emit(Ramp{op.label}, Kind::integer, {});
    return {known->second, DType::i64};
  }
  Typed compile_step(const Constant& op, DType type) {
    return std::visit([&](auto number) { return constant(number, type); }, op.value);
  }
  Typed compile_step(const ScalarValue& op, DType type) {
    const auto bound = scalars_.find(op.name);
    invariant(bound != scalars_.end(), "a scalar is not bound");
    return constant(bound->second, type);
  }
  Typed compile_step(const ApplyUnary& op, DType type) {
    const Typed x = pop();
    invariant(kind(x) == kind_of(type), "a function computes in the type of its argument");
    return {emit(op, kind_of(type), {x.value}), after_arithmetic(type, may_leave_type(op.function))};
  }
  Typed compile_step(const ApplyBinary& op, DType type) {
    const Typed b = pop();
    const Typed a = pop();
    invariant(kind(a) == kind(b), "both arguments of a step have one type");
    invariant(is_comparison(op.function) ? type == DType::boolean : kind(a) == kind_of(type),
              "a function computes in the type of its arguments");
    if (op.function == BinaryFunction::power && is_two(b)) {  // the same number, much faster
      return {emit(ApplyUnary{UnaryFunction::sq}, kind_of(type), {a.value}), after_arithmetic(type, true)};
    }
    return {emit(op, kind_of(type), {a.value, b.value}), after_arithmetic(type, may_leave_type(op.function))};
  }
  Typed compile_step(const ApplyWhere& op, DType type) {
    const Typed b = pop();
    const Typed a = pop();
    const Typed c = pop();
    invariant(kind(a) == kind_of(type) && kind(b) == kind_of(type), "where chooses between values of its type");
    const std::size_t condition =
        kind(c) == Kind::integer ? c.value : emit(ConvertTo{DType::boolean}, Kind::integer, {c.value});
    return {emit(op, kind_of(type), {condition, a.value, b.value}), type};
  }
  Typed compile_step(const Convert&, DType) { return pop(); }
  Typed compile_step(const Round& op, DType type) { return {emit(op, kind_of(type), {pop().value}), type}; }

  Typed compile_step(const ApplyRandom& op, DType type) {
    const Typed iteration = pop();
    const Typed position = pop();
    const Typed seed = pop();
    return {emit(op, kind_of(type), {seed.value, position.value, iteration.value}), type};
  }

  Typed compile_step(const CheckRange& op, DType type) {
    const Typed position = pop();
    const Typed value = pop();
    return {emit(op, kind_of(type), {value.value, position.value}), type};
  }

  static DType after_arithmetic(DType type, bool may_leave) {
    return may_leave && kind_of(type) == Kind::integer ? DType::i64 : type;
  }

  /// Rounded to its type as the reference does.
  template <class Given>
  Typed constant(Given given, DType type) {
    const Number number =
        with_stored_type(type, [&]<class Stored>() -> Number { return widen(narrow<Stored>(given)); });
    for (const auto& [value, known] : program_.constants_) {
      if (program_.values_[value].kind == kind_of(type) && same_bits(known, number)) return {value, type};
    }
    program_.constants_.emplace_back(new_value(kind_of(type)), number);
    return {program_.constants_.back().first, type};
  }

  bool is_two(Typed typed) const {
    return std::any_of(program_.constants_.begin(), program_.constants_.end(), [&](const auto& constant) {
      return constant.first == typed.value && std::visit([](auto number) { return number == 2; }, constant.second);
    });
  }

  /// Equal, and of one sign when 0.
  static bool same_bits(Number a, Number b) {
    if (a != b) return false;
    return !std::holds_alternative<double>(a) || std::signbit(std::get<double>(a)) == std::signbit(std::get<double>(b));
  }

  void assign_slots() {
    auto& instructions = program_.instructions_;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      for (std::size_t a = 0; a < instructions[i].argument_count; ++a) {
        program_.values_[instructions[i].arguments[a]].last_use = i;
      }
    }
    program_.values_[program_.result_].last_use = instructions.size();
    for (const auto& [value, number] : program_.constants_) {
      program_.values_[value].last_use = instructions.size();  // they stay for the next block
      program_.values_[value].slot = program_.slot_count_++;
    }
    std::vector<std::size_t> free;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const bool in_place = may_be_in_place(instructions[i]);
      if (in_place) free_arguments(i, free);
      if (free.empty()) free.push_back(program_.slot_count_++);
      program_.values_[instructions[i].result].slot = free.back();
      free.pop_back();
      if (!in_place) free_arguments(i, free);
    }
  }

  /// Whether the result may be written over any of the arguments: fewer slots take less of the first-level cache from
  /// operands that come in.
  bool may_be_in_place(const Instruction& instruction) const {
    const auto* const arguments = instruction.arguments.data();
    return std::all_of(arguments, arguments + instruction.argument_count, [&](std::size_t argument) {
      return program_.values_[argument].kind == program_.values_[instruction.result].kind;
    });
  }

  /// The slots of what the instruction is the last one to use; last those that were computed, since what is loaded may
  /// stay where it lies in an operand.
  void free_arguments(std::size_t i, std::vector<std::size_t>& free) {
    const Instruction& instruction = program_.instructions_[i];
    for (const bool loaded : {true, false}) {
      for (std::size_t a = 0; a < instruction.argument_count; ++a) {
        Value& value = program_.values_[instruction.arguments[a]];
        if (value.last_use != i || value.is_loaded != loaded) continue;
        free.push_back(value.slot);
        value.last_use = program_.instructions_.size();  // an argument given twice is freed once
      }
    }
  }

  BlockProgram& program_;
  const ScalarBindings& scalars_;
  std::vector<Typed> stack_;
  std::map<std::size_t, std::size_t> operands_;  // values of what is loaded already
  std::map<std::size_t, std::size_t> labels_;
};

BlockProgram::BlockProgram(const ScalarExpr& body, const LoopNest& nest, const ScalarBindings& scalars) : nest_(nest) {
  Compiler(*this, scalars).compile(body);
}

std::int64_t BlockProgram::most_lanes() const {
  const bool wide =
      std::any_of(values_.begin(), values_.end(), [](const Value& value) { return value.kind != Kind::float32; });
  return lanes_for(slot_count_, wide);
}

std::int64_t BlockProgram::workspace_bytes() const {
  return static_cast<std::int64_t>(slot_count_) * most_lanes() * bytes_per_lane;
}

std::byte* BlockRun::slot_of(std::size_t value) const {
  return workspace_ + static_cast<std::int64_t>(program_.values_[value].slot) * slot_bytes_;
}

BlockRun::BlockRun(const BlockProgram& program, const Lanes& lanes, const std::byte* const* operands,
                   std::byte* workspace)
    : program_(program),
      lanes_(lanes),
      operands_(operands),
      workspace_(workspace),
      slot_bytes_(program.most_lanes() * bytes_per_lane),
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
      if (const T* const there = in_place<T>(reading, data, lanes, outer)) {
        block.at_[instruction.result] = reinterpret_cast<const std::byte*>(there);
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
    BlockProgram::with_type(result_kind(),
                            [&]<class T>() { apply_block(unary.function, argument<T>(0), result<T>(), count); });
  }
  void operator()(const ApplyBinary& binary) const {
    BlockProgram::with_type(argument_kind(0), [&]<class T>() {
      if (is_comparison(binary.function)) {
        compare_block(binary.function, argument<T>(0), argument<T>(1), result<std::int64_t>(), count);
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
      select_block(argument<std::int64_t>(0), argument<T>(1), argument<T>(2), result<T>(), count);
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
    BlockProgram::with_type(argument_kind(0),
                            [&]<class From>() { round_block(round.to, argument<From>(0), result<float>(), count); });
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

bool BlockProgram::is_approximated_of(std::size_t value) const {
  const auto uses = [value](const Instruction& instruction) {
    const auto end = instruction.arguments.begin() + static_cast<std::ptrdiff_t>(instruction.argument_count);
    return std::find(instruction.arguments.begin(), end, value) != end;
  };
  const auto first = std::find_if(instructions_.begin(), instructions_.end(), uses);
  if (first == instructions_.end()) return false;
  if (const auto* const unary = std::get_if<ApplyUnary>(&first->op)) return has(unary->function, Trait::approximated);
  const auto* const binary = std::get_if<ApplyBinary>(&first->op);
  return binary != nullptr && binary->function == BinaryFunction::power;
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
