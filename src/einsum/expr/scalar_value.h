#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "einsum/expr/random_number.h"
#include "einsum/expr/scalar_expr.h"

namespace einrel {

/// A float or an integer (or bool) as it is computed with.
using Number = std::variant<double, std::int64_t>;

/// `value` as a step of this type leaves it: rounded, wrapped, truncated or made 0 or 1.
Number as_type(DType type, Number value);

/// Whether it is anything but 0.
bool is_true(Number value);

/// An element of `tensor`, the one at `indices`, is no position of what it indexes.
class IndexOutOfRange : public RunError {
 public:
  IndexOutOfRange(const std::string& message, std::string whose, std::vector<std::int64_t> where)
      : RunError(message), tensor(std::move(whose)), indices(std::move(where)) {}
  std::string tensor;
  std::vector<std::int64_t> indices;
};

/// The value, if it is from 0 up to, but not including, op.extent. Else throws IndexOutOfRange, which names it and
/// where it stands.
std::int64_t checked_range(const CheckRange& op, std::int64_t value, std::int64_t position);

/// Takes what a step pops off the stack and gives what it pushes. `LeafValues` has the values of operands, labels and
/// scalars.
template <class LeafValues>
class StackMachine {
 public:
  explicit StackMachine(const LeafValues& leaves) : leaves_(leaves) {}

  Number operator()(const ScalarExpr& expr) {
    stack_.clear();
    for (const ScalarStep& step : expr.steps) {
      is_single_ = step.type == DType::f32;
      const Number value = std::visit([&](const auto& op) { return compute(op); }, step.op);
      stack_.push_back(as_type(step.type, value));
    }
    invariant(stack_.size() == 1, "an expression leaves one value");
    return stack_.back();
  }

 private:
  Number pop() {
    invariant(!stack_.empty(), "a step pops more than was pushed");
    const Number top = stack_.back();
    stack_.pop_back();
    return top;
  }

  Number compute(const OperandValue& op) { return leaves_(op); }
  Number compute(const LabelValue& op) { return leaves_(op); }
  Number compute(const ScalarValue& op) { return leaves_(op); }
  Number compute(const Constant& op) {
    return std::visit([](auto value) -> Number { return value; }, op.value);
  }
  Number compute(const ApplyUnary& op) {
    return std::visit([&](auto x) -> Number { return apply(op.function, x); }, pop());
  }
  Number compute(const ApplyBinary& op) {
    const Number b = pop();
    const Number a = pop();
    invariant(a.index() == b.index(), "both arguments of a step have one type");
    if (std::holds_alternative<double>(a)) return apply(op.function, std::get<double>(a), std::get<double>(b));
    return apply(op.function, std::get<std::int64_t>(a), std::get<std::int64_t>(b));
  }
  Number compute(const ApplyWhere&) {
    const Number b = pop();
    const Number a = pop();
    return is_true(pop()) ? a : b;
  }
  Number compute(const Convert&) { return pop(); }
  Number compute(const Round& op) { return as_type(op.to, pop()); }
  Number compute(const ApplyRandom& op) {
    const auto iteration = std::get<std::int64_t>(pop());
    const auto position = std::get<std::int64_t>(pop());
    const auto seed = std::get<std::int64_t>(pop());
    return random_number(op.function, {seed, position, iteration, op.stream}, is_single_);
  }
  Number compute(const CheckRange& op) {
    const auto position = std::get<std::int64_t>(pop());
    const auto value = std::get<std::int64_t>(pop());
    return checked_range(op, value, position);
  }

  const LeafValues& leaves_;
  std::vector<Number> stack_;
  bool is_single_ = false;  // the step that is being computed leaves an f32
};

/// The value of an expression: each step is computed in double (floats) or int64 (integers, bool) and rounded to its
/// type. Throws Bug where the steps are no expression. O(steps).
template <class LeafValues>
Number evaluate(const ScalarExpr& expr, const LeafValues& leaves) {
  return StackMachine<LeafValues>(leaves)(expr);
}

}  // namespace einrel
