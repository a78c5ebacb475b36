#include "einsum/gradient/arithmetic.h"

namespace einrel::gradient {

using build::Formula;

namespace {

bool is(const Formula& formula, double value) { return number_of(formula) == value; }

/// The arguments of a binary operation, if it is that one.
const std::vector<Formula>* arguments_of(BinaryFunction function, const Formula& formula) {
  const auto* const binary = std::get_if<build::Binary>(&formula.op());
  return binary != nullptr && binary->function == function ? &formula.arguments() : nullptr;
}

}  // namespace

std::optional<double> number_of(const Formula& formula) {
  const auto* const number = std::get_if<build::Number>(&formula.op());
  return number == nullptr ? std::nullopt : std::optional(number->value);
}

std::optional<Formula> negated(const Formula& formula) {
  const auto* const unary = std::get_if<build::Unary>(&formula.op());
  if (unary == nullptr || unary->function != UnaryFunction::negate) return std::nullopt;
  return formula.arguments().front();
}

Formula negative(const Formula& a) {
  if (const std::optional<double> number = number_of(a)) return build::number(-*number);
  if (const std::optional<Formula> x = negated(a)) return *x;
  return apply(UnaryFunction::negate, a);
}

Formula sum(const Formula& a, const Formula& b) {
  if (is(a, 0)) return b;
  if (is(b, 0)) return a;
  if (number_of(a) && number_of(b)) return build::number(*number_of(a) + *number_of(b));
  if (const std::optional<Formula> x = negated(b)) return difference(a, *x);
  return apply(BinaryFunction::add, a, b);
}

Formula difference(const Formula& a, const Formula& b) {
  if (is(b, 0)) return a;
  if (is(a, 0)) return negative(b);
  if (number_of(a) && number_of(b)) return build::number(*number_of(a) - *number_of(b));
  return apply(BinaryFunction::subtract, a, b);
}

Formula product(const Formula& a, const Formula& b) {
  if (is(a, 0) || is(b, 0)) return build::number(0);
  if (is(a, 1)) return b;
  if (is(b, 1)) return a;
  if (is(a, -1)) return negative(b);
  if (is(b, -1)) return negative(a);
  if (number_of(a) && number_of(b)) return build::number(*number_of(a) * *number_of(b));
  if (const std::optional<Formula> x = negated(a)) return negative(product(*x, b));
  if (const std::optional<Formula> x = negated(b)) return negative(product(a, *x));
  if (const auto* const parts = arguments_of(BinaryFunction::divide, b); parts != nullptr && is(parts->front(), 1))
    return quotient(a, parts->back());
  return apply(BinaryFunction::multiply, a, b);
}

Formula quotient(const Formula& a, const Formula& b) {
  if (is(a, 0)) return a;
  if (is(b, 1)) return a;
  if (number_of(a) && number_of(b)) return build::number(*number_of(a) / *number_of(b));
  if (const std::optional<Formula> x = negated(a)) return negative(quotient(*x, b));
  return apply(BinaryFunction::divide, a, b);
}

Formula only_where(const Formula& condition, const Formula& value) {
  return is(value, 0) ? value : where(condition, value, build::number(0));
}

}  // namespace einrel::gradient
