#include "einsum/scalar_expr.h"

#include "base/error.h"

namespace einrel {

std::size_t arity(const ScalarStep& step) {
  struct Arity {
    std::size_t operator()(const OperandValue&) const { return 0; }
    std::size_t operator()(const Constant&) const { return 0; }
    std::size_t operator()(const LabelValue&) const { return 0; }
    std::size_t operator()(const ScalarValue&) const { return 0; }
    std::size_t operator()(const ApplyUnary&) const { return 1; }
    std::size_t operator()(const ApplyBinary&) const { return 2; }
    std::size_t operator()(const ApplyWhere&) const { return 3; }
    std::size_t operator()(const Convert&) const { return 1; }
    std::size_t operator()(const Round&) const { return 1; }
    std::size_t operator()(const ApplyRandom&) const { return 3; }
    std::size_t operator()(const CheckRange&) const { return 2; }
  };
  return std::visit(Arity{}, step.op);
}

ScalarStep whole_step(std::int64_t value, DType type) {
  return {type, is_float(type) ? Constant{static_cast<double>(value)} : Constant{value}};
}

ScalarStep binary_step(DType type, BinaryFunction function) { return {type, ApplyBinary{function}}; }

void append(ScalarExpr& expr, const ScalarExpr& more) {
  expr.steps.insert(expr.steps.end(), more.steps.begin(), more.steps.end());
}

ScalarExpr only_where(ScalarExpr condition, const ScalarExpr& value) {
  append(condition, value);
  append(condition, {{whole_step(0, value.type()), {value.type(), ApplyWhere{}}}});
  return condition;
}

std::vector<std::vector<std::size_t>> arguments_of_steps(const ScalarExpr& expr) {
  std::vector<std::vector<std::size_t>> arguments;
  std::vector<std::size_t> stack;
  for (const ScalarStep& step : expr.steps) {
    const std::size_t popped = arity(step);
    invariant(popped <= stack.size(), "a step pops more than was pushed");
    const auto first = stack.end() - static_cast<std::ptrdiff_t>(popped);
    arguments.emplace_back(first, stack.end());
    stack.erase(first, stack.end());
    stack.push_back(arguments.size() - 1);
  }
  return arguments;
}

std::vector<std::size_t> subexpression_starts(const ScalarExpr& expr) {
  std::vector<std::size_t> starts;
  std::vector<std::size_t> stack;  // where each value on the stack begins
  for (const ScalarStep& step : expr.steps) {
    const std::size_t popped = arity(step);
    invariant(popped <= stack.size(), "a step pops more than was pushed");
    const std::size_t start = popped == 0 ? starts.size() : stack[stack.size() - popped];
    stack.resize(stack.size() - popped);
    stack.push_back(start);
    starts.push_back(start);
  }
  return starts;
}

}  // namespace einrel
