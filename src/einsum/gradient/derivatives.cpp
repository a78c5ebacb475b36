#include "einsum/gradient/derivatives.h"

#include <numbers>
#include <utility>

#include "einsum/gradient/arithmetic.h"

namespace einrel::gradient {

using build::Formula;

namespace {

Formula number(double value) { return build::number(value); }
Formula is_equal(const Formula& a, const Formula& b) { return apply(BinaryFunction::equal, a, b); }
Formula is_greater(const Formula& a, const Formula& b) { return apply(BinaryFunction::greater, a, b); }

/// The derivative of a function of one number.
struct Derivative {
  Formula factor;
  /// It is 0 elsewhere.
  std::optional<Formula> only_where = std::nullopt;
  /// It is infinite or nothing where this is 0. A flow of 0 that comes there stays 0: it comes from a side that was not
  /// taken.
  std::optional<Formula> infinite_at_zero = std::nullopt;
};

/// exp(-x^2 / 2) / sqrt(2 pi)
Formula normal_density(const Formula& x) {
  const double scale = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return product(number(scale), apply(UnaryFunction::exp, product(number(-0.5), apply(UnaryFunction::sq, x))));
}

/// x / 2 * (1 + erf(x / sqrt(2))): the share of numbers below x times 1, and how it grows times x.
Formula derivative_of_gelu(const Formula& x) {
  const Formula share =
      product(number(0.5), sum(number(1), apply(UnaryFunction::erf, product(number(1 / std::numbers::sqrt2), x))));
  return sum(share, product(x, normal_density(x)));
}

/// x * s, where s = sigmoid(x) and s' = s * (1 - s).
Formula derivative_of_silu(const Formula& x) {
  const Formula s = apply(UnaryFunction::sigmoid, x);
  return product(s, sum(number(1), product(x, difference(number(1), s))));
}

/// abs'(0) = 0
Formula sign(const Formula& x) {
  return where(is_greater(x, number(0)), number(1),
               where(apply(BinaryFunction::less, x, number(0)), number(-1), number(0)));
}

/// One row for each function: its derivative at x, where its value is y. Nothing where it is 0 everywhere.
std::optional<Derivative> derivative(UnaryFunction function, const Formula& x, const Formula& y, bool is_of_squares,
                                     bool is_positive_argument) {
  const Formula one = number(1);
  const Formula is_positive = is_greater(x, number(0));
  const Formula positive_part = apply(UnaryFunction::relu, x);
  const auto unless_positive = [&](const Formula& zero) {
    return is_positive_argument ? std::nullopt : std::optional(zero);
  };
  switch (function) {
    case UnaryFunction::negate: return Derivative{number(-1)};
    case UnaryFunction::abs: return Derivative{sign(x)};
    case UnaryFunction::exp: return Derivative{y};
    case UnaryFunction::expm1: return Derivative{apply(UnaryFunction::exp, x)};
    case UnaryFunction::log: return Derivative{quotient(one, x), {}, unless_positive(x)};
    case UnaryFunction::log1p: return Derivative{quotient(one, sum(one, x)), {}, unless_positive(sum(one, x))};
    case UnaryFunction::sqrt:
      if (is_of_squares) return Derivative{quotient(one, product(number(2), y)), is_positive};
      return Derivative{quotient(one, product(number(2), y)), {}, unless_positive(positive_part)};
    case UnaryFunction::rsqrt:
      return Derivative{quotient(product(number(-0.5), y), x), {}, unless_positive(positive_part)};
    case UnaryFunction::sq: return Derivative{product(number(2), x)};
    case UnaryFunction::tanh: return Derivative{difference(one, apply(UnaryFunction::sq, y))};
    case UnaryFunction::sigmoid: return Derivative{product(y, difference(one, y))};
    case UnaryFunction::relu: return Derivative{one, is_positive};
    case UnaryFunction::gelu: return Derivative{derivative_of_gelu(x)};
    case UnaryFunction::silu: return Derivative{derivative_of_silu(x)};
    case UnaryFunction::erf:
      return Derivative{product(number(2 * std::numbers::inv_sqrtpi),
                                apply(UnaryFunction::exp, negative(apply(UnaryFunction::sq, x))))};
    case UnaryFunction::sin: return Derivative{apply(UnaryFunction::cos, x)};
    case UnaryFunction::cos: return Derivative{negative(apply(UnaryFunction::sin, x))};
    case UnaryFunction::step:
    case UnaryFunction::floor:
    case UnaryFunction::stop_gradient: return std::nullopt;
  }
  return std::nullopt;
}

/// The flow times a derivative.
Flow times(const Flow& flow, const Derivative& derivative) {
  Flow result = flow;
  if (derivative.only_where) result.only_on({*derivative.only_where, true});
  result.value = product(flow.value, derivative.factor);
  if (derivative.infinite_at_zero && !number_of(flow.value)) {
    const auto size = [](const Formula& x) { return apply(UnaryFunction::abs, x); };
    const Formula larger = apply(BinaryFunction::maximum, size(*derivative.infinite_at_zero), size(flow.value));
    result.only_on({is_equal(larger, number(0)), false});
  }
  return result;
}

using TwoFlows = std::pair<std::optional<Flow>, std::optional<Flow>>;

/// a ** b by a and by b. 0 ** b is 0 for any b above 0, and a ** 0 is 1 for any a.
TwoFlows flows_of_power(const Formula& a, const Formula& b, const Formula& y, const Flow& flow) {
  const std::optional<double> exponent = number_of(b);
  const Formula log_of_a = product(y, apply(UnaryFunction::log, a));
  Derivative by_b{log_of_a, is_greater(a, number(0)), std::nullopt};
  if (exponent == 0) return {std::nullopt, times(flow, by_b)};
  if (exponent == 1) return {flow, times(flow, by_b)};
  const Formula power =
      exponent == 2 ? a : apply(BinaryFunction::power, a, exponent ? number(*exponent - 1) : difference(b, number(1)));
  Derivative by_a{product(b, power)};
  if (!exponent) {  // a ** 0 does not change with a: at 0, where the formula is 0 * inf; elsewhere it says so by itself
    const auto size = [](const Formula& x) { return apply(UnaryFunction::abs, x); };
    by_a.only_where = apply(BinaryFunction::not_equal, apply(BinaryFunction::maximum, size(a), size(b)), number(0));
  }
  if (!exponent || *exponent < 1) by_a.infinite_at_zero = a;
  return {times(flow, by_a), times(flow, by_b)};
}

/// max and min: half to each of two that are equal.
TwoFlows flows_of_extreme(BinaryFunction is_kept, const Formula& a, const Formula& b, const Flow& flow) {
  const Formula share = where(is_equal(a, b), number(0.5), number(1));
  return {times(flow, {share, apply(is_kept, a, b)}), times(flow, {share, apply(is_kept, b, a)})};
}

/// y = a / b by a and by b.
TwoFlows flows_of_quotient(const StepFormulas& of, const Flow& flow) {
  const Formula& b = of.arguments[1];
  Derivative by_a{quotient(number(1), b)};
  Derivative by_b{negative(quotient(of.value, b))};  // b * b may leave the range of numbers where b does not
  if (!number_of(b) && !of.is_positive) by_a.infinite_at_zero = by_b.infinite_at_zero = b;
  return {times(flow, by_a), times(flow, by_b)};
}

TwoFlows flows_of(BinaryFunction function, const StepFormulas& of, const Flow& flow) {
  const Formula& a = of.arguments[0];
  const Formula& b = of.arguments[1];
  switch (function) {
    case BinaryFunction::add: return {flow, flow};
    case BinaryFunction::subtract: return {flow, times(flow, {number(-1)})};
    case BinaryFunction::multiply: return {times(flow, {b}), times(flow, {a})};
    case BinaryFunction::divide: return flows_of_quotient(of, flow);
    case BinaryFunction::power: return flows_of_power(a, b, of.value, flow);
    case BinaryFunction::maximum: return flows_of_extreme(BinaryFunction::greater_equal, a, b, flow);
    case BinaryFunction::minimum: return flows_of_extreme(BinaryFunction::less_equal, a, b, flow);
    case BinaryFunction::less:
    case BinaryFunction::less_equal:
    case BinaryFunction::greater:
    case BinaryFunction::greater_equal:
    case BinaryFunction::equal:
    case BinaryFunction::not_equal: return {std::nullopt, std::nullopt};
  }
  return {std::nullopt, std::nullopt};
}

using Flows = std::vector<std::optional<Flow>>;

struct StepRule {
  const StepFormulas& of;
  const Flow& flow;

  Flows operator()(const ApplyUnary& unary) const {
    const std::optional<Derivative> by_x =
        derivative(unary.function, of.arguments.front(), of.value, of.is_of_squares, of.is_positive);
    return {by_x ? std::optional(times(flow, *by_x)) : std::nullopt};
  }
  Flows operator()(const ApplyBinary& binary) const {
    TwoFlows flows = flows_of(binary.function, of, flow);
    return {std::move(flows.first), std::move(flows.second)};
  }
  Flows operator()(const ApplyWhere&) const {
    Flow taken = flow;
    taken.only_on({of.arguments.front(), true});
    Flow other = flow;
    other.only_on({of.arguments.front(), false});
    return {std::nullopt, std::move(taken), std::move(other)};
  }
  Flows operator()(const Convert&) const { return {flow}; }
  Flows operator()(const Round&) const { return {flow}; }
  template <class Leaf>
  Flows operator()(const Leaf&) const {
    return {};
  }
};

}  // namespace

Flows flows_to_arguments(const StepFormulas& of, const Flow& flow) {
  if (!is_float(of.step.type)) return Flows(of.arguments.size());
  return std::visit(StepRule{of, flow}, of.step.op);
}

}  // namespace einrel::gradient
