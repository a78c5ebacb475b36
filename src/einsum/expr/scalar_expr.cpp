#include "einsum/expr/scalar_expr.h"

#include <algorithm>

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

DType compute_type(DType dtype) { return is_narrow(dtype) ? DType::f32 : dtype; }

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

std::optional<std::size_t> operand_read(const ScalarStep& step) {
  const auto* const value = std::get_if<OperandValue>(&step.op);
  return value == nullptr ? std::nullopt : std::optional(value->operand);
}

std::optional<std::size_t> label_read(const ScalarStep& step) {
  const auto* const value = std::get_if<LabelValue>(&step.op);
  return value == nullptr ? std::nullopt : std::optional(value->label);
}

bool reads_operand(const ScalarExpr& expr, std::size_t operand) {
  return std::any_of(expr.steps.begin(), expr.steps.end(),
                     [&](const ScalarStep& step) { return operand_read(step) == operand; });
}

bool reads_label(const ScalarExpr& expr, std::size_t label) {
  return std::any_of(expr.steps.begin(), expr.steps.end(),
                     [&](const ScalarStep& step) { return label_read(step) == label; });
}

bool may_throw(const ScalarExpr& expr) {
  return std::any_of(expr.steps.begin(), expr.steps.end(),
                     [](const ScalarStep& step) { return std::holds_alternative<CheckRange>(step.op); });
}

void map_operands(ScalarExpr& expr, const Renumbering& to) {
  for (ScalarStep& step : expr.steps) {
    if (auto* const value = std::get_if<OperandValue>(&step.op)) value->operand = to(value->operand);
  }
}

void map_labels(ScalarExpr& expr, const Renumbering& to) {
  for (ScalarStep& step : expr.steps) {
    if (auto* const value = std::get_if<LabelValue>(&step.op)) value->label = to(value->label);
  }
}

ScalarExpr substitute(const ScalarExpr& expr,
                      const std::function<std::vector<ScalarStep>(const ScalarStep&)>& replacement) {
  ScalarExpr result;
  for (const ScalarStep& step : expr.steps) {
    const std::vector<ScalarStep> steps = replacement(step);
    if (steps.empty()) result.steps.push_back(step);
    result.steps.insert(result.steps.end(), steps.begin(), steps.end());
  }
  return result;
}

}  // namespace einrel
