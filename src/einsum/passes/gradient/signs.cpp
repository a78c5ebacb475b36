#include "einsum/passes/gradient/signs.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "einsum/graph/vertex_facts.h"

namespace einrel::gradient {
namespace {

bool is_unary(const ScalarStep& step, UnaryFunction function) {
  const auto* const unary = std::get_if<ApplyUnary>(&step.op);
  return unary != nullptr && unary->function == function;
}

bool is_binary(const ScalarStep& step, BinaryFunction function) {
  const auto* const binary = std::get_if<ApplyBinary>(&step.op);
  return binary != nullptr && binary->function == function;
}

std::optional<double> constant_of(const ScalarStep& step) {
  const auto* const constant = std::get_if<Constant>(&step.op);
  if (constant == nullptr) return std::nullopt;
  return std::visit([](auto number) { return static_cast<double>(number); }, constant->value);
}

/// A body with the arguments of its steps.
struct Body {
  const std::vector<ScalarStep>& steps;
  std::vector<std::vector<std::size_t>> arguments;

  explicit Body(const Vertex& of)
      : steps(einsum_of(of)->body.steps), arguments(arguments_of_steps(einsum_of(of)->body)) {}
};

/// sq(x), x * x, x ** 2 and the like: 0 at most where x is, and never below.
bool is_square(const Body& body, std::size_t at) {
  if (is_unary(body.steps[at], UnaryFunction::sq)) return true;
  const std::vector<std::size_t>& taken = body.arguments[at];
  if (is_binary(body.steps[at], BinaryFunction::power)) {
    const std::optional<double> exponent = constant_of(body.steps[taken[1]]);
    return exponent && *exponent > 0 && std::fmod(*exponent, 2) == 0;
  }
  if (!is_binary(body.steps[at], BinaryFunction::multiply)) return false;
  // The steps of one factor, then as many of the other.
  const std::size_t length = at - 1 - taken[0];
  const auto end_of = [&](std::size_t step) { return body.steps.begin() + static_cast<std::ptrdiff_t>(step) + 1; };
  const auto back = static_cast<std::ptrdiff_t>(length);
  return taken[0] + 1 >= length && std::equal(end_of(taken[0]) - back, end_of(taken[0]), end_of(taken[1]) - back);
}

bool is_exponential(const Body& body, std::size_t at) { return is_unary(body.steps[at], UnaryFunction::exp); }

/// A bool that counts as 0 or 1.
bool is_truth(const Body& body, std::size_t at) {
  return std::holds_alternative<Convert>(body.steps[at].op) &&
         body.steps[body.arguments[at].front()].type == DType::boolean;
}

/// The steps whose sum, with factors and in shares that are not negative, a step is; nothing where it is none.
std::optional<std::vector<std::size_t>> terms_of(const Body& body, std::size_t at) {
  const ScalarStep& step = body.steps[at];
  const std::vector<std::size_t>& taken = body.arguments[at];
  const auto is_share = [&](std::size_t argument) { return constant_of(body.steps[argument]).value_or(-1) >= 0; };
  const bool multiplies = is_binary(step, BinaryFunction::multiply);
  if (is_binary(step, BinaryFunction::add)) return taken;
  if (std::holds_alternative<ApplyWhere>(step.op)) return std::vector{taken[1], taken[2]};
  if (std::holds_alternative<Convert>(step.op) || std::holds_alternative<Round>(step.op)) return taken;
  if (multiplies && is_share(taken[0])) return std::vector{taken[1]};
  if ((multiplies || is_binary(step, BinaryFunction::divide)) && is_share(taken[1])) return std::vector{taken[0]};
  return std::nullopt;
}

/// For each step whether it is, or adds up, nothing but terms for which is_term(body, step) holds. `of_vertices` says
/// so of tensors.
template <class IsTerm>
std::vector<bool> steps_that_add_up(const Body& body, const Vertex& vertex, const std::vector<bool>& of_vertices,
                                    const IsTerm& is_term) {
  std::vector<bool> add_up;
  for (std::size_t s = 0; s < body.steps.size(); ++s) {
    bool adds_up = is_term(body, s) || constant_of(body.steps[s]) == 0;
    if (const auto* const value = std::get_if<OperandValue>(&body.steps[s].op)) {
      adds_up = of_vertices[vertex.inputs[value->operand].index];
    } else if (!adds_up) {
      const std::optional<std::vector<std::size_t>> terms = terms_of(body, s);
      adds_up = terms && std::all_of(terms->begin(), terms->end(), [&](std::size_t term) { return add_up[term]; });
    }
    add_up.push_back(adds_up);
  }
  return add_up;
}

}  // namespace

Signs::Signs(const EinGraph& graph) {
  for (const Vertex& vertex : graph.vertices) {
    const EinSum* const einsum = einsum_of(vertex);
    const bool adds = einsum != nullptr &&
                      (!einsum->reducer || *einsum->reducer == Reducer::sum || *einsum->reducer == Reducer::mean);
    if (!adds) {
      add_squares_.push_back(false);
      add_exponentials_.push_back(false);
      continue;
    }
    const Body body(vertex);
    add_squares_.push_back(steps_that_add_up(body, vertex, add_squares_, is_square).back());
    add_exponentials_.push_back(steps_that_add_up(body, vertex, add_exponentials_, is_exponential).back());
  }
}

Signs::OfSteps Signs::of_steps(const Vertex& vertex) const {
  const Body body(vertex);
  OfSteps signs;
  signs.add_squares = steps_that_add_up(body, vertex, add_squares_, is_square);
  for (std::size_t s = 0; s < body.steps.size(); ++s) {
    const ScalarStep& step = body.steps[s];
    const auto* const value = std::get_if<OperandValue>(&step.op);
    bool is_positive = value != nullptr && add_exponentials_[vertex.inputs[value->operand].index];
    for (const std::size_t side : {0U, 1U}) {
      if (body.arguments[s].size() != 2) break;
      const std::size_t own = body.arguments[s][side];
      const std::size_t other = body.arguments[s][1 - side];
      const bool is_sum = is_binary(step, BinaryFunction::add);
      const bool is_more = is_binary(step, BinaryFunction::maximum) || (is_sum && signs.add_squares[other]);
      is_positive = is_positive || (constant_of(body.steps[own]).value_or(0) > 0 && is_more) ||
                    (is_sum && signs.are_positive[own] && is_truth(body, other));
    }
    signs.are_positive.push_back(is_positive);
  }
  return signs;
}

}  // namespace einrel::gradient
