#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "einsum/reference.h"
#include "support/compare.h"
#include "support/random_einsum.h"

namespace einrel::test {

// How far a right result may lie from the reference. The bound of a body is a body itself, of f64, that the reference
// evaluates: |f(x + e) - f(x)| from the errors e of the arguments, plus the rounding of the step.

namespace bounding {

using Steps = std::vector<ScalarStep>;

inline Steps number(double value) { return {{DType::f64, Constant{value}}}; }
inline Steps applied(UnaryFunction function, Steps x) {
  x.push_back({DType::f64, ApplyUnary{function}});
  return x;
}
inline Steps applied(BinaryFunction function, Steps a, const Steps& b) {
  a.insert(a.end(), b.begin(), b.end());
  a.push_back({function == BinaryFunction::less || function == BinaryFunction::equal ? DType::boolean : DType::f64,
               ApplyBinary{function}});
  return a;
}
inline Steps where(Steps condition, const Steps& a, const Steps& b) {
  condition.insert(condition.end(), a.begin(), a.end());
  condition.insert(condition.end(), b.begin(), b.end());
  condition.push_back({DType::f64, ApplyWhere{}});
  return condition;
}
inline Steps plus(const Steps& a, const Steps& b) { return applied(BinaryFunction::add, a, b); }
inline Steps times(const Steps& a, const Steps& b) { return applied(BinaryFunction::multiply, a, b); }
inline Steps magnitude(const Steps& a) { return applied(UnaryFunction::abs, a); }

inline constexpr double anything = std::numeric_limits<double>::infinity();

/// A little less than the largest number of f32 or f64.
inline double range_of(DType computed) { return computed == DType::f32 ? 0x1p126 : 0x1p1020; }

/// The least distance of neighbours of a float type.
inline double least(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-1074;
    case DType::f16: return 0x1p-24;
    case DType::bf16: return 0x1p-133;
    default: return 0x1p-149;
  }
}

/// The error of a body whose steps are right to 8 units in the last place where they are transcendental, and rounded
/// exactly where they are not; nothing where no step of it can differ.
class BodyError {
 public:
  explicit BodyError(const ScalarExpr& body) : body_(body), starts_(subexpression_starts(body)) {
    for (at_ = 0; at_ < body.steps.size(); ++at_) {
      errors_.push_back(std::visit([this](const auto& op) { return error(op); }, body.steps[at_].op));
    }
  }

  const std::optional<Steps>& error() const { return errors_.back(); }
  /// The body itself, as f64.
  Steps value() const { return value_of(body_.steps.size() - 1); }

 private:
  Steps value_of(std::size_t root) const {
    Steps steps(body_.steps.begin() + static_cast<std::ptrdiff_t>(starts_[root]),
                body_.steps.begin() + static_cast<std::ptrdiff_t>(root) + 1);
    if (steps.back().type != DType::f64) steps.push_back({DType::f64, Convert{}});
    return steps;
  }
  std::size_t last_argument() const { return at_ - 1; }
  std::size_t argument_before(std::size_t argument) const { return starts_[argument] - 1; }

  Steps rounding(double units) const {
    const DType type = body_.steps[at_].type;
    return plus(times(number(units * epsilon(type)), magnitude(value_of(at_))), number(64 * least(type)));
  }
  static std::optional<Steps> refuse() { throw std::logic_error("no bound is known for such a body"); }

  std::optional<Steps> error(const OperandValue&) const { return std::nullopt; }
  std::optional<Steps> error(const Constant&) const { return std::nullopt; }
  std::optional<Steps> error(const LabelValue&) const { return std::nullopt; }
  std::optional<Steps> error(const ScalarValue&) const { return std::nullopt; }
  std::optional<Steps> error(const Convert&) const {
    const std::optional<Steps>& e = errors_[last_argument()];
    if (!e) return std::nullopt;
    return is_float(body_.steps[at_].type) ? plus(*e, rounding(1)) : refuse();
  }
  std::optional<Steps> error(const Round&) const { return errors_[last_argument()] ? refuse() : std::nullopt; }
  static std::optional<Steps> error(const ApplyRandom&) { return std::nullopt; }  // of exact numbers, the same
  static std::optional<Steps> error(const CheckRange&) { return std::nullopt; }
  /// The slopes hold for the arguments that random smooth bodies give (1 and above for logarithms and rsqrt).
  std::optional<Steps> error(const ApplyUnary& op) const {
    using U = UnaryFunction;
    const std::optional<Steps>& e = errors_[last_argument()];
    switch (op.function) {
      case U::negate:
      case U::abs:
      case U::relu: return e;
      case U::sqrt:
      case U::step:
      case U::floor: return e ? refuse() : std::nullopt;
      case U::sq:
        if (!e) return std::nullopt;
        return plus(times(*e, plus(times(number(2), magnitude(value_of(last_argument()))), *e)), rounding(1));
      case U::exp:
      case U::expm1:
        if (!e) return rounding(8);
        return plus(times(times(number(1.2), plus(magnitude(value_of(at_)), number(1))), *e), rounding(8));
      default: return e ? plus(times(number(1.2), *e), rounding(8)) : rounding(8);
    }
  }
  std::optional<Steps> error(const ApplyBinary& op) const {
    using B = BinaryFunction;
    const std::size_t b = last_argument();
    const std::size_t a = argument_before(b);
    if (op.function == B::power && is_float(body_.steps[at_].type)) return refuse();
    if (!errors_[a] && !errors_[b]) return std::nullopt;
    const Steps error_a = errors_[a].value_or(number(0));
    const Steps error_b = errors_[b].value_or(number(0));
    switch (op.function) {
      case B::maximum:
      case B::minimum: return plus(error_a, error_b);
      case B::add:
      case B::subtract: return plus(plus(error_a, error_b), rounding(1));
      case B::multiply:
        return plus(plus(times(plus(magnitude(value_of(a)), error_a), error_b), times(magnitude(value_of(b)), error_a)),
                    rounding(1));
      default: return refuse();
    }
  }
  std::optional<Steps> error(const ApplyWhere&) const {
    const std::size_t b = last_argument();
    const std::size_t a = argument_before(b);
    return errors_[a] || errors_[b] || errors_[argument_before(a)] ? refuse() : std::nullopt;
  }

  const ScalarExpr& body_;
  std::vector<std::size_t> starts_;
  std::vector<std::optional<Steps>> errors_;
  std::size_t at_ = 0;
};

/// The reference with another body (of f64) and reducer.
inline std::vector<double> reference_of(const RandomEinsum& random, std::optional<Reducer> reducer, Steps body) {
  Vertex vertex = random.vertex;
  EinSum einsum = random.einsum();
  einsum.reducer = reducer;
  einsum.body.steps = std::move(body);
  vertex.dtype = DType::f64;
  vertex.op = std::move(einsum);
  return values_of(evaluate_reference(vertex, random.operands, random.scalars));
}

/// The largest finite term of each reduction, if the steps of f32 were not rounded to f32.
inline std::vector<double> largest_unrounded(const RandomEinsum& random) {
  Steps wide;
  for (const ScalarStep& step : random.einsum().body.steps) {
    wide.push_back(step);
    if (step.type != DType::f32) continue;
    if (arity(step) == 0 || std::holds_alternative<Convert>(step.op)) {
      wide.push_back({DType::f64, Convert{}});
    } else {
      wide.back().type = DType::f64;
    }
  }
  const Steps size = magnitude(wide);
  return reference_of(random, Reducer::max,
                      where(applied(BinaryFunction::less, size, number(anything)), size, number(0)));
}

/// Products of the same factors in another order differ by a rounding each, unless some of the partial products leave
/// the range of the type: then by anything. (NaN, infinities and zeros among the factors act alike in every order.)
inline std::vector<double> product_errors(const RandomEinsum& random, const BodyError& body, DType computed) {
  const Steps size = magnitude(body.value());
  const Steps rounded = times(size, number(1 + 4 * epsilon(computed)));
  const std::vector<double> plain = reference_of(random, Reducer::prod, size);
  std::vector<double> errors =
      reference_of(random, Reducer::prod, body.error() ? plus(rounded, *body.error()) : rounded);
  const Steps one = number(1);
  const Steps infinite = number(anything);
  const std::vector<double> above = reference_of(
      random, Reducer::prod,
      where(applied(BinaryFunction::less, size, infinite), applied(BinaryFunction::maximum, size, one), one));
  const std::vector<double> below = reference_of(
      random, Reducer::prod,
      where(applied(BinaryFunction::equal, size, number(0)), one, applied(BinaryFunction::minimum, size, one)));
  for (std::size_t i = 0; i < errors.size(); ++i) {
    errors[i] -= plain[i];
    if (above[i] > range_of(computed) || below[i] < 1 / range_of(computed)) errors[i] = anything;
  }
  return errors;
}

/// Before rounding to the type of the result. `relative` is what the length of the reduction allows.
inline std::vector<double> reduction_errors(const RandomEinsum& random, std::size_t count, DType computed,
                                            double relative) {
  const BodyError body(random.einsum().body);
  const std::optional<Reducer> reducer = random.einsum().reducer;
  std::vector<double> errors(count, 0);
  if (!reducer) return body.error() ? reference_of(random, std::nullopt, *body.error()) : errors;
  switch (*reducer) {
    case Reducer::max:
    case Reducer::min: return body.error() ? reference_of(random, Reducer::max, *body.error()) : errors;
    case Reducer::prod: return product_errors(random, body, computed);
    case Reducer::sum:
    case Reducer::sumsq:
    case Reducer::mean: {
      const bool squares = *reducer == Reducer::sumsq;
      const Steps size = magnitude(body.value());
      Steps error = times(squares ? times(size, size) : size, number(relative));
      if (body.error()) {
        const Steps slope = squares ? plus(times(number(2), size), *body.error()) : number(1);
        error = plus(error, times(times(slope, *body.error()), number(1 + relative)));
      }
      errors = reference_of(random, squares ? Reducer::sum : reducer, std::move(error));
      const bool overflows = !std::all_of(errors.begin(), errors.end(), [](double e) { return std::isfinite(e); });
      const std::vector<double> largest =
          overflows && computed == DType::f32 ? largest_unrounded(random) : std::vector<double>(count, 0);
      for (std::size_t i = 0; i < count; ++i) {
        const bool finite = std::isfinite(errors[i]);
        if (finite ? errors[i] > relative * range_of(computed) : largest[i] > range_of(computed)) {
          errors[i] = anything;
        } else if (std::isinf(errors[i])) {
          errors[i] = 0;  // one of the terms is infinite: so is the sum in every order, or it is NaN
        }
      }
      return errors;
    }
    case Reducer::logsumexp:
      if (body.error()) errors = reference_of(random, Reducer::max, *body.error());
      for (double& e : errors) e += 8 * relative;
      return errors;
    default: throw std::logic_error("a reduction to integers is exact");
  }
}

/// Processors that multiply and add bf16 put 0 for what comes out below the normal range of f32.
inline double flushed(const RandomEinsum& random, double length, DType computed) {
  const EinSum& einsum = random.einsum();
  const bool adds = einsum.reducer == Reducer::sum || einsum.reducer == Reducer::mean;
  const bool is_bf16 = std::all_of(random.operands.begin(), random.operands.end(),
                                   [](const Tensor& operand) { return operand.dtype() == DType::bf16; });
  return adds && is_bf16 && computed == DType::f32 ? length * 0x1p-126 : 0;
}

}  // namespace bounding

/// The bound of every kernel, for each element of the result: what it may differ by from `want`, the reference.
///
/// Integers and bools: nothing. Floats that are not added or multiplied up: what the body may differ by; nothing for
/// bodies of exactly rounded operations. A sum of n terms in any order, multiplied and added in the type `reduces_in`
/// (f32 or f64; f64 bodies always in f64), with or without fused multiply-add: every term is rounded at most n + 2
/// times, each time by epsilon / 2 of what has come up so far, so (n + 2) * epsilon * sum of |terms|. The same relative
/// to the terms for a mean; for a product, per factor. Of bf16, n * 2^-126 more. logsumexp(x) moves by no more than the
/// largest error of an x; its exponentials, their sum and the logarithm add 8 * (n + 2) * epsilon. On top, rounding to
/// the stored type, where both may fall on different sides.
///
/// `onto` are the values that the result is accumulated onto, if it is. Infinite means that any value is right: where
/// only some orders of adding or multiplying overflow, or a term that a fused multiply-add does not round.
inline std::vector<double> allowed_errors(const RandomEinsum& random, const Tensor& want, DType reduces_in,
                                          const std::vector<double>& onto = {}) {
  const auto count = static_cast<std::size_t>(want.count());
  if (!is_float(want.dtype())) return std::vector<double>(count, 0);
  const EinSum& einsum = random.einsum();
  double length = 1;
  for (const std::size_t label : einsum.reduced) length *= static_cast<double>(einsum.labels[label].extent.value());
  if (length == 0) return std::vector<double>(count, 0);
  const DType computed = einsum.body.type() == DType::f32 ? reduces_in : DType::f64;
  const double relative = (length + 2) * epsilon(computed);
  std::vector<double> allowed = bounding::reduction_errors(random, count, computed, relative);
  const std::vector<double> values = values_of(want);
  for (std::size_t i = 0; i < count; ++i) {
    if (allowed[i] == bounding::anything) continue;
    if (!onto.empty() && einsum.reducer == Reducer::sum) allowed[i] += relative * std::abs(onto[i]);
    if (!onto.empty() && einsum.reducer == Reducer::prod) {
      allowed[i] = allowed[i] * std::abs(onto[i]) + 4 * epsilon(computed) * std::abs(values[i]);
    }
    if (allowed[i] != 0) {
      allowed[i] += 1.01 * epsilon(want.dtype()) * std::abs(values[i]) + bounding::least(want.dtype()) +
                    bounding::flushed(random, length, computed);
    }
  }
  return allowed;
}

}  // namespace einrel::test
