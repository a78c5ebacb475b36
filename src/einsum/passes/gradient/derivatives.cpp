#include "einsum/passes/gradient/derivatives.h"

#include <numbers>
#include <utility>

#include "einsum/passes/gradient/arithmetic.h"

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
  /// It is infinite or nothing where this is 0. An adjoint of 0 that comes there stays 0: it comes from a side that was
  /// not taken.
  std::optional<Formula> infinite_at_zero = std::nullopt;
};

/// Every function of one value, of a formula.
namespace functions {
#define EINREL_UNARY(id, ...) \
  [[maybe_unused]] Formula id(const Formula& x) { return apply(UnaryFunction::id, x); }
#include "einsum/expr/functions.def"
}  // namespace functions

/// The column `slope` of functions.def for one step.
class Slopes {
 public:
  explicit Slopes(const StepFormulas& of) : of_(of) {}

  /// Nothing where it is 0 everywhere.
  std::optional<Derivative> of(UnaryFunction function) const {
    using namespace functions;
    const Formula& x = of_.arguments.front();
    const Formula& y = of_.value;
    const Formula one = number(1);
    switch (function) {
#define EINREL_UNARY(id, name, usage, meaning, traits, value, slope, ...) \
  case UnaryFunction::id: {                                               \
    return slope;                                                         \
  }
#include "einsum/expr/functions.def"
    }
    return flat();
  }

 private:
  static std::optional<Derivative> flat() { return std::nullopt; }
  static std::optional<Derivative> slope(const Formula& factor) { return Derivative{factor}; }
  /// One that is infinite, or nothing, where `zero` is 0.
  std::optional<Derivative> pole(const Formula& factor, const Formula& zero) const {
    return Derivative{factor, {}, of_.is_positive ? std::nullopt : std::optional(zero)};
  }
  std::optional<Derivative> slope_where_positive(const Formula& factor) const {
    return Derivative{factor, is_greater(of_.arguments.front(), number(0))};
  }
  /// That of a norm is 0 at 0.
  std::optional<Derivative> slope_of_root(const Formula& factor) const {
    return of_.is_of_squares ? slope_where_positive(factor) : pole(factor, functions::relu(of_.arguments.front()));
  }

  /// abs'(0) = 0
  static Formula sign(const Formula& x) {
    return where(is_greater(x, number(0)), number(1),
                 where(apply(BinaryFunction::less, x, number(0)), number(-1), number(0)));
  }
  /// exp(-x^2 / 2) / sqrt(2 pi)
  static Formula normal_density(const Formula& x) {
    const double scale = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    return product(number(scale), functions::exp(product(number(-0.5), functions::sq(x))));
  }
  /// (1 + erf(x / sqrt(2))) / 2: how much of a normal distribution is below x.
  static Formula normal_share(const Formula& x) {
    return product(number(0.5), sum(number(1), functions::erf(product(number(1 / std::numbers::sqrt2), x))));
  }

  const StepFormulas& of_;
};

/// The adjoint times a derivative.
GuardedAdjoint times(const GuardedAdjoint& adjoint, const Derivative& derivative) {
  GuardedAdjoint result = adjoint;
  if (derivative.only_where) result.only_on({*derivative.only_where, true});
  result.value = product(adjoint.value, derivative.factor);
  if (derivative.infinite_at_zero && !number_of(adjoint.value)) {
    const auto size = [](const Formula& x) { return apply(UnaryFunction::abs, x); };
    const Formula larger = apply(BinaryFunction::maximum, size(*derivative.infinite_at_zero), size(adjoint.value));
    result.only_on({is_equal(larger, number(0)), false});
  }
  return result;
}

using TwoAdjoints = std::pair<std::optional<GuardedAdjoint>, std::optional<GuardedAdjoint>>;

/// a ** b by a and by b. 0 ** b is 0 for any b above 0, and a ** 0 is 1 for any a.
TwoAdjoints adjoints_of_power(const Formula& a, const Formula& b, const Formula& y, const GuardedAdjoint& adjoint) {
  const std::optional<double> exponent = number_of(b);
  const Formula log_of_a = product(y, apply(UnaryFunction::log, a));
  Derivative by_b{log_of_a, is_greater(a, number(0)), std::nullopt};
  if (exponent == 0) return {std::nullopt, times(adjoint, by_b)};
  if (exponent == 1) return {adjoint, times(adjoint, by_b)};
  const Formula power =
      exponent == 2 ? a : apply(BinaryFunction::power, a, exponent ? number(*exponent - 1) : difference(b, number(1)));
  Derivative by_a{product(b, power)};
  if (!exponent) {  // a ** 0 does not change with a: at 0, where the formula is 0 * inf; elsewhere it says so by itself
    const auto size = [](const Formula& x) { return apply(UnaryFunction::abs, x); };
    by_a.only_where = apply(BinaryFunction::not_equal, apply(BinaryFunction::maximum, size(a), size(b)), number(0));
  }
  if (!exponent || *exponent < 1) by_a.infinite_at_zero = a;
  return {times(adjoint, by_a), times(adjoint, by_b)};
}

/// max and min: half to each of two that are equal.
TwoAdjoints adjoints_of_extreme(BinaryFunction is_kept, const Formula& a, const Formula& b,
                                const GuardedAdjoint& adjoint) {
  const Formula share = where(is_equal(a, b), number(0.5), number(1));
  return {times(adjoint, {share, apply(is_kept, a, b)}), times(adjoint, {share, apply(is_kept, b, a)})};
}

/// y = a / b by a and by b.
TwoAdjoints adjoints_of_quotient(const StepFormulas& of, const GuardedAdjoint& adjoint) {
  const Formula& b = of.arguments[1];
  Derivative by_a{quotient(number(1), b)};
  Derivative by_b{negative(quotient(of.value, b))};  // b * b may leave the range of numbers where b does not
  if (!number_of(b) && !of.is_positive) by_a.infinite_at_zero = by_b.infinite_at_zero = b;
  return {times(adjoint, by_a), times(adjoint, by_b)};
}

TwoAdjoints adjoints_of(BinaryFunction function, const StepFormulas& of, const GuardedAdjoint& adjoint) {
  const Formula& a = of.arguments[0];
  const Formula& b = of.arguments[1];
  switch (function) {
    case BinaryFunction::add: return {adjoint, adjoint};
    case BinaryFunction::subtract: return {adjoint, times(adjoint, {number(-1)})};
    case BinaryFunction::multiply: return {times(adjoint, {b}), times(adjoint, {a})};
    case BinaryFunction::divide: return adjoints_of_quotient(of, adjoint);
    case BinaryFunction::power: return adjoints_of_power(a, b, of.value, adjoint);
    case BinaryFunction::maximum: return adjoints_of_extreme(BinaryFunction::greater_equal, a, b, adjoint);
    case BinaryFunction::minimum: return adjoints_of_extreme(BinaryFunction::less_equal, a, b, adjoint);
    case BinaryFunction::less:
    case BinaryFunction::less_equal:
    case BinaryFunction::greater:
    case BinaryFunction::greater_equal:
    case BinaryFunction::equal:
    case BinaryFunction::not_equal: return {std::nullopt, std::nullopt};
  }
  return {std::nullopt, std::nullopt};
}

using ArgumentAdjoints = std::vector<std::optional<GuardedAdjoint>>;

struct StepRule {
  const StepFormulas& of;
  const GuardedAdjoint& adjoint;

  ArgumentAdjoints operator()(const ApplyUnary& unary) const {
    const std::optional<Derivative> by_x = Slopes(of).of(unary.function);
    return {by_x ? std::optional(times(adjoint, *by_x)) : std::nullopt};
  }
  ArgumentAdjoints operator()(const ApplyBinary& binary) const {
    TwoAdjoints adjoints = adjoints_of(binary.function, of, adjoint);
    return {std::move(adjoints.first), std::move(adjoints.second)};
  }
  ArgumentAdjoints operator()(const ApplyWhere&) const {
    GuardedAdjoint taken = adjoint;
    taken.only_on({of.arguments.front(), true});
    GuardedAdjoint other = adjoint;
    other.only_on({of.arguments.front(), false});
    return {std::nullopt, std::move(taken), std::move(other)};
  }
  ArgumentAdjoints operator()(const Convert&) const { return {adjoint}; }
  ArgumentAdjoints operator()(const Round&) const { return {adjoint}; }
  template <class Leaf>
  ArgumentAdjoints operator()(const Leaf&) const {
    return {};
  }
};

}  // namespace

ArgumentAdjoints adjoints_of_arguments(const StepFormulas& of, const GuardedAdjoint& adjoint) {
  if (!is_float(of.step.type)) return ArgumentAdjoints(of.arguments.size());
  return std::visit(StepRule{of, adjoint}, of.step.op);
}

}  // namespace einrel::gradient
