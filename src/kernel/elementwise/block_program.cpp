#include "kernel/elementwise/block_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"
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

/// What fits of at most so many, in whole cache lines, so that two slots do not share one.
std::int64_t lanes_for(std::size_t slots, std::int64_t most) {
  constexpr std::int64_t lanes_per_line = nominal_processor.line_bytes / BlockProgram::bytes_per_lane;
  constexpr std::int64_t budget = most_workspace_bytes / 2 / BlockProgram::bytes_per_lane;
  const std::int64_t fitting = budget / std::max(static_cast<std::int64_t>(slots), std::int64_t{1});
  return std::clamp(fitting / lanes_per_line * lanes_per_line, lanes_per_line, most);
}

/// The type that elements of an operand have once loaded.
DType loaded_type(DType stored) { return is_narrow(stored) ? DType::f32 : stored; }

}  // namespace

/// Turns stack steps into instructions whose results are numbered values, then gives every value a slot.
class BlockProgram::Compiler {
 public:
  Compiler(BlockProgram& program, const ScalarBindings& scalars) : program_(program), scalars_(scalars) {}

  void compile(const ScalarExpr& body, DType type) {
    for (const ScalarStep& step : body.steps) {
      const Typed result = std::visit([&](const auto& op) { return compile_step(op, step.type); }, step.op);
      stack_.push_back(is_truth(result) && is_whole(step.type) ? result : Typed{as_type(result, step.type), step.type});
    }
    invariant(stack_.size() == 1, "a body leaves one value");
    program_.result_ = as_kind(stack_.back(), kind_of(type));
    forget_unused_constants();
    assign_slots();
  }

 private:
  /// A value and the type that its numbers are known to fit; DType::i64 after arithmetic on i32. Truths stay such where
  /// they are converted to integers, until something is computed of them that truths do not have.
  struct Typed {
    std::size_t value = 0;
    DType type = DType::f32;
  };

  static Kind kind_of(DType type) {
    switch (type) {
      case DType::f32: return Kind::float32;
      case DType::f64: return Kind::float64;
      case DType::i32:
      case DType::i64: return Kind::integer;
      case DType::boolean: return Kind::truth;
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
    if (from.type == to || (to == DType::i64 && kind(from) == Kind::integer)) return from.value;
    return emit(ConvertTo{to}, kind_of(to), {from.value});
  }

  Kind kind(Typed typed) const { return program_.values_[typed.value].kind; }
  static bool is_whole(DType type) { return type == DType::i32 || type == DType::i64; }
  bool is_truth(Typed typed) const { return kind(typed) == Kind::truth; }
  /// Truths as integers, where those are wanted.
  std::size_t as_kind(Typed typed, Kind wanted) {
    if (kind(typed) == wanted) return typed.value;
    invariant(is_truth(typed) && wanted == Kind::integer, "a step computes in the type of its arguments");
    return as_type(typed, DType::i64);
  }

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
    const bool is_of_truths = type == DType::boolean;  // which have no functions of their own
    const Kind computed = is_of_truths ? Kind::integer : kind_of(type);
    const std::size_t x = as_kind(pop(), computed);
    const bool may_leave = may_leave_type(op.function);
    return {emit(op, computed, {x}), is_of_truths ? DType::i64 : after_arithmetic(type, may_leave)};
  }
  Typed compile_step(const ApplyBinary& op, DType type) {
    const Typed second = pop();
    const Typed first = pop();
    if (const auto truths = as_truths(op.function, first, second)) {
      return {emit(op, Kind::truth, {truths->first, truths->second}), DType::boolean};
    }
    const Kind common = is_truth(first) ? is_truth(second) ? Kind::integer : kind(second) : kind(first);
    const Typed a{as_kind(first, common), first.type};
    const Typed b{as_kind(second, common), second.type};
    if (type == DType::boolean && !is_comparison(op.function)) {
      return {emit(op, Kind::integer, {a.value, b.value}), DType::i64};
    }
    if (op.function == BinaryFunction::power && is_constant(b, 2)) {  // the same number, much faster
      return {emit(ApplyUnary{UnaryFunction::sq}, kind_of(type), {a.value}), after_arithmetic(type, true)};
    }
    return {emit(op, kind_of(type), {a.value, b.value}), after_arithmetic(type, may_leave_type(op.function))};
  }
  Typed compile_step(const ApplyWhere& op, DType type) {
    const Typed b = pop();
    const Typed a = pop();
    const Typed c = pop();
    const std::size_t first = as_kind(a, kind_of(type));
    const std::size_t second = as_kind(b, kind_of(type));
    return {emit(op, kind_of(type), {as_type(c, DType::boolean), first, second}), type};
  }
  Typed compile_step(const Convert&, DType) { return pop(); }
  Typed compile_step(const Round& op, DType type) {
    const Typed x = pop();
    return {emit(op, kind_of(type), {is_truth(x) ? as_kind(x, Kind::integer) : x.value}), type};
  }

  Typed compile_step(const ApplyRandom& op, DType type) {
    const std::size_t iteration = as_kind(pop(), Kind::integer);
    const std::size_t position = as_kind(pop(), Kind::integer);
    const std::size_t seed = as_kind(pop(), Kind::integer);
    return {emit(op, kind_of(type), {seed, position, iteration}), type};
  }

  Typed compile_step(const CheckRange& op, DType type) {
    const std::size_t position = as_kind(pop(), Kind::integer);
    const std::size_t value = as_kind(pop(), Kind::integer);
    return {emit(op, kind_of(type), {value, position}), type};
  }

  static DType after_arithmetic(DType type, bool may_leave) { return may_leave && is_whole(type) ? DType::i64 : type; }

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

  bool is_constant(Typed typed, int wanted) const {
    return std::any_of(program_.constants_.begin(), program_.constants_.end(), [&](const auto& constant) {
      const auto is_wanted = [wanted](auto number) { return number == wanted; };
      return constant.first == typed.value && std::visit(is_wanted, constant.second);
    });
  }

  /// Both arguments as truths, where one is and the other is, too, or the number 0 or 1, and the function is one of
  /// truths.
  std::optional<std::pair<std::size_t, std::size_t>> as_truths(BinaryFunction function, Typed a, Typed b) {
    const auto may_be = [&](Typed x) {
      return is_truth(x) || (kind(x) == Kind::integer && (is_constant(x, 0) || is_constant(x, 1)));
    };
    const bool is_of_truths = is_comparison(function) || einrel::kind_of(function) == BinaryKind::extreme;
    if (!is_of_truths || !(is_truth(a) || is_truth(b)) || !may_be(a) || !may_be(b)) return std::nullopt;
    const auto as_truth = [&](Typed x) {
      return is_truth(x) ? x.value : constant(std::int64_t{is_constant(x, 1)}, DType::boolean).value;
    };
    const std::size_t first = as_truth(a);
    return std::pair(first, as_truth(b));
  }

  /// Equal, and of one sign when 0.
  static bool same_bits(Number a, Number b) {
    if (a != b) return false;
    return !std::holds_alternative<double>(a) || std::signbit(std::get<double>(a)) == std::signbit(std::get<double>(b));
  }

  /// Numbers that came to be truths, for example.
  void forget_unused_constants() {
    const auto is_unused = [&](const auto& constant) {
      const auto uses = [&](const Instruction& instruction) { return instruction.uses(constant.first); };
      return constant.first != program_.result_ &&
             std::none_of(program_.instructions_.begin(), program_.instructions_.end(), uses);
    };
    auto& constants = program_.constants_;
    constants.erase(std::remove_if(constants.begin(), constants.end(), is_unused), constants.end());
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

BlockProgram::BlockProgram(const ScalarExpr& body, DType result, const LoopNest& nest, const ScalarBindings& scalars)
    : nest_(nest) {
  Compiler(*this, scalars).compile(body, result);
}

std::int64_t BlockProgram::most_lanes() const {
  constexpr auto most = static_cast<std::int64_t>(lanes_per_block);
  const auto has_kind = [&](auto... kinds) {
    const auto is_one = [&](std::size_t value) { return ((values_[value].kind == kinds) || ...); };
    return std::any_of(instructions_.begin(), instructions_.end(),
                       [&](const Instruction& instruction) { return is_one(instruction.result); }) ||
           std::any_of(constants_.begin(), constants_.end(),
                       [&](const auto& constant) { return is_one(constant.first); });
  };
  if (has_kind(Kind::float64, Kind::integer)) return lanes_for(slot_count_, most / 2);
  return lanes_for(slot_count_, has_kind(Kind::float32) ? most : 4 * most);
}

std::int64_t BlockProgram::workspace_bytes() const {
  return static_cast<std::int64_t>(slot_count_) * most_lanes() * BlockProgram::bytes_per_lane;
}

bool BlockProgram::is_approximated_of(std::size_t value) const {
  const auto first = std::find_if(instructions_.begin(), instructions_.end(),
                                  [value](const Instruction& instruction) { return instruction.uses(value); });
  if (first == instructions_.end()) return false;
  if (const auto* const unary = std::get_if<ApplyUnary>(&first->op)) return has(unary->function, Trait::approximated);
  const auto* const binary = std::get_if<ApplyBinary>(&first->op);
  return binary != nullptr && binary->function == BinaryFunction::power;
}

}  // namespace einrel
