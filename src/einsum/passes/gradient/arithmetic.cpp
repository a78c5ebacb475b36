#include "einsum/passes/gradient/arithmetic.h"

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

namespace {

/// A formula without a sign in front of it.
struct Unsigned {
  Formula value;
  bool was_negative = false;
};
Unsigned without_sign(const Formula& formula) {
  const std::optional<Formula> x = negated(formula);
  return x ? Unsigned{*x, true} : Unsigned{formula};
}
Formula with_sign(const Formula& formula, bool is_negative) { return is_negative ? negative(formula) : formula; }

Formula unsigned_quotient(const Formula& a, const Formula& b) {
  if (is(a, 0) || is(b, 1)) return a;
  if (number_of(a) && number_of(b)) return build::number(*number_of(a) / *number_of(b));
  return apply(BinaryFunction::divide, a, b);
}

Formula unsigned_product(const Formula& a, const Formula& b) {
  if (is(a, 0) || is(b, 0)) return build::number(0);
  if (is(a, 1)) return b;
  if (is(b, 1)) return a;
  if (is(a, -1)) return negative(b);
  if (is(b, -1)) return negative(a);
  if (number_of(a) && number_of(b)) return build::number(*number_of(a) * *number_of(b));
  // 1 / b may leave the range of numbers where a / b does not.
  if (const auto* const parts = arguments_of(BinaryFunction::divide, b); parts != nullptr && is(parts->front(), 1))
    return unsigned_quotient(a, parts->back());
  if (const auto* const parts = arguments_of(BinaryFunction::divide, a); parts != nullptr && is(parts->front(), 1))
    return unsigned_quotient(b, parts->back());
  return apply(BinaryFunction::multiply, a, b);
}

}  // namespace

Formula product(const Formula& a, const Formula& b) {
  const Unsigned x = without_sign(a);
  const Unsigned y = without_sign(b);
  return with_sign(unsigned_product(x.value, y.value), x.was_negative != y.was_negative);
}

Formula quotient(const Formula& a, const Formula& b) {
  const Unsigned x = without_sign(a);
  return with_sign(unsigned_quotient(x.value, b), x.was_negative);
}

Formula only_where(const Formula& condition, const Formula& value) {
  return is(value, 0) ? value : where(condition, value, build::number(0));
}

}  // namespace einrel::gradient
