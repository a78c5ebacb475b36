#include "einsum/passes/optimisers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace einrel {
namespace {

using build::apply;
using build::Formula;
using Formulas = std::map<std::string, Formula>;

Formula plus(const Formula& a, const Formula& b) { return apply(BinaryFunction::add, a, b); }
Formula minus(const Formula& a, const Formula& b) { return apply(BinaryFunction::subtract, a, b); }
Formula times(const Formula& a, const Formula& b) { return apply(BinaryFunction::multiply, a, b); }
Formula over(const Formula& a, const Formula& b) { return apply(BinaryFunction::divide, a, b); }
Formula root(const Formula& x) { return apply(UnaryFunction::sqrt, x); }
Formula square(const Formula& x) { return apply(UnaryFunction::sq, x); }

/// 1 - x, of a number in double: 1 - 0.9 in f32 would be off by a part in ten million.
Formula rest_of(const Formula& x) {
  const auto* const number = std::get_if<build::Number>(&x.op());
  return number != nullptr ? build::number(1 - number->value) : minus(build::whole_number(1), x);
}

Formulas no_numbers(const Formulas& /*parameters*/, const Formula& /*steps*/) { return {}; }
Formulas no_moments(const UpdateParts& /*before*/) { return {}; }

/// W - eta G
Formula sgd(const UpdateParts& parts) { return minus(parts.weight, times(parts.parameters.at("eta"), parts.gradient)); }

/// V' = mu V + G
Formulas velocity(const UpdateParts& before) {
  return {{"velocity", plus(times(before.parameters.at("mu"), before.moments.at("velocity")), before.gradient)}};
}

/// W - eta V'
Formula momentum(const UpdateParts& parts) {
  return minus(parts.weight, times(parts.parameters.at("eta"), parts.moments.at("velocity")));
}

/// W - eta (G + mu V')
Formula nesterov(const UpdateParts& parts) {
  const Formula ahead = plus(parts.gradient, times(parts.parameters.at("mu"), parts.moments.at("velocity")));
  return minus(parts.weight, times(parts.parameters.at("eta"), ahead));
}

/// The length of a step, eta / (1 - b1^t), and what makes up for a mean of squares that began at 0, 1 / sqrt(1 - b2^t).
Formulas adam_numbers(const Formulas& parameters, const Formula& steps) {
  const auto power = [&](const char* base) {
    const Formula exact = build::cast(DType::f64, parameters.at(base));
    return minus(build::whole_number(1), apply(BinaryFunction::power, exact, steps));
  };
  return {{"rate", over(parameters.at("eta"), power("b1"))}, {"scale", apply(UnaryFunction::rsqrt, power("b2"))}};
}

/// M' = b1 M + (1 - b1) G; S' = b2 S + (1 - b2) G^2
Formulas adam_moments(const UpdateParts& before) {
  const Formula& b1 = before.parameters.at("b1");
  const Formula& b2 = before.parameters.at("b2");
  return {{"mean", plus(times(b1, before.moments.at("mean")), times(rest_of(b1), before.gradient))},
          {"square", plus(times(b2, before.moments.at("square")), times(rest_of(b2), square(before.gradient)))}};
}

/// W - rate M' / (sqrt(S') scale + eps), of that weight.
Formula adam_from(const Formula& weight, const UpdateParts& parts) {
  const Formula width =
      plus(times(root(parts.moments.at("square")), parts.numbers.at("scale")), parts.parameters.at("eps"));
  return minus(weight, over(times(parts.numbers.at("rate"), parts.moments.at("mean")), width));
}

Formula adam(const UpdateParts& parts) { return adam_from(parts.weight, parts); }

/// The same of a weight that has decayed to (1 - eta decay) W.
Formula adamw(const UpdateParts& parts) {
  const Formula kept = rest_of(times(parts.parameters.at("eta"), parts.parameters.at("decay")));
  return adam_from(times(kept, parts.weight), parts);
}

}  // namespace

const std::vector<Optimiser>& optimisers() {
  const OptimiserParameter eta{"eta", {}};
  const OptimiserParameter mu{"mu", 0.9};
  const OptimiserParameter b1{"b1", 0.9};
  const OptimiserParameter b2{"b2", 0.999};
  const OptimiserParameter eps{"eps", 1e-8};
  static const std::vector<Optimiser> all{
      {"sgd", {eta}, {}, no_numbers, no_moments, sgd},
      {"momentum", {eta, mu}, {"velocity"}, no_numbers, velocity, momentum},
      {"nesterov", {eta, mu}, {"velocity"}, no_numbers, velocity, nesterov},
      {"adam", {eta, b1, b2, eps}, {"mean", "square"}, adam_numbers, adam_moments, adam},
      {"adamw", {eta, {"decay", 0.01}, b1, b2, eps}, {"mean", "square"}, adam_numbers, adam_moments, adamw},
  };
  return all;
}

std::string usage_of(const Optimiser& optimiser) {
  std::vector<std::string> parameters;
  for (const auto& [name, value] : optimiser.parameters)
    parameters.push_back(value ? fmt::format("{} = {}", name, *value) : name);
  return fmt::format("{}({})", optimiser.name, fmt::join(parameters, ", "));
}

}  // namespace einrel
