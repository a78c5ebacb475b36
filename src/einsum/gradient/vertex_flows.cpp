#include "einsum/gradient/vertex_flows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "einsum/build/fresh_name.h"
#include "einsum/build/from_graph.h"
#include "einsum/build/substitute.h"
#include "einsum/gradient/arithmetic.h"
#include "einsum/typing.h"
#include "einsum/vertex_facts.h"

namespace einrel::gradient {

using build::Formula;

namespace {

bool is_unary(const ScalarStep& step, UnaryFunction function) {
  const auto* const unary = std::get_if<ApplyUnary>(&step.op);
  return unary != nullptr && unary->function == function;
}

bool is_binary(const ScalarStep& step, BinaryFunction function) {
  const auto* const binary = std::get_if<ApplyBinary>(&step.op);
  return binary != nullptr && binary->function == function;
}

std::optional<double> number_of(const ScalarStep& step) {
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
    const std::optional<double> exponent = number_of(body.steps[taken[1]]);
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

/// The steps whose sum, with factors and in shares that are not negative, a step is; nothing where it is none.
std::optional<std::vector<std::size_t>> terms_of(const Body& body, std::size_t at) {
  const ScalarStep& step = body.steps[at];
  const std::vector<std::size_t>& taken = body.arguments[at];
  const auto is_share = [&](std::size_t argument) { return number_of(body.steps[argument]).value_or(-1) >= 0; };
  const bool multiplies = is_binary(step, BinaryFunction::multiply);
  if (is_binary(step, BinaryFunction::add)) return taken;
  if (std::holds_alternative<ApplyWhere>(step.op)) return std::vector{taken[1], taken[2]};
  if (std::holds_alternative<Convert>(step.op) || std::holds_alternative<Round>(step.op)) return taken;
  if (multiplies && is_share(taken[0])) return std::vector{taken[1]};
  if ((multiplies || is_binary(step, BinaryFunction::divide)) && is_share(taken[1])) return std::vector{taken[0]};
  return std::nullopt;
}

/// Whether a step of a vertex is, or adds up, nothing but terms for which is_term(body, step) holds: sq(x) + 2 * sq(y),
/// or mean[i] sq(X[i]), also in vertices of their own.
template <class IsTerm>
bool adds_up(const EinGraph& graph, const Vertex& vertex, std::size_t step, const IsTerm& is_term) {
  std::map<const Vertex*, Body> bodies;
  std::set<std::pair<const Vertex*, std::size_t>> seen;
  std::vector<std::pair<const Vertex*, std::size_t>> waiting{{&vertex, step}};
  while (!waiting.empty()) {
    const auto [of, at] = waiting.back();
    waiting.pop_back();
    if (!seen.insert({of, at}).second) continue;
    const Body& body = bodies.try_emplace(of, *of).first->second;
    if (is_term(body, at) || number_of(body.steps[at]) == 0) continue;
    if (const auto* const value = std::get_if<OperandValue>(&body.steps[at].op)) {
      const Vertex& operand = graph[of->inputs[value->operand]];
      const EinSum* const einsum = einsum_of(operand);
      if (einsum == nullptr) return false;
      if (einsum->reducer && *einsum->reducer != Reducer::sum && *einsum->reducer != Reducer::mean) return false;
      waiting.emplace_back(&operand, einsum->body.steps.size() - 1);
      continue;
    }
    const std::optional<std::vector<std::size_t>> terms = terms_of(body, at);
    if (!terms) return false;
    for (const std::size_t term : *terms) waiting.emplace_back(of, term);
  }
  return true;
}

/// Whether a step is above 0, as far as that is easily seen: squares and a positive number, or a tensor that sums
/// exponentials, as the divisor of a softmax.
bool is_positive(const EinGraph& graph, const Vertex& vertex, std::size_t step) {
  const Body body(vertex);
  if (std::holds_alternative<OperandValue>(body.steps[step].op)) return adds_up(graph, vertex, step, is_exponential);
  if (!is_binary(body.steps[step], BinaryFunction::add)) return false;
  for (const std::size_t side : {0U, 1U}) {
    const double number = number_of(body.steps[body.arguments[step][side]]).value_or(0);
    if (number > 0 && adds_up(graph, vertex, body.arguments[step][1 - side], is_square)) return true;
  }
  return false;
}

/// What flows back through one EinSum.
class EinSumFlows {
 public:
  EinSumFlows(Vertex vertex, const GrowingGraph& growing)
      : vertex_(std::move(vertex)), einsum_(*einsum_of(vertex_)), growing_(growing), names_(label_names(vertex_)) {
    values_ = build::formulas_of(vertex_, growing.graph, names_);
    const bool is_stored = !einsum_.reducer && vertex_.dtype == einsum_.body.type() && values_.size() > 1;
    if (!is_stored) return;
    computed_ = values_.back();
    values_.back() = result();
  }

  std::vector<OperandFlow> run(const Formula& adjoint, const std::vector<bool>& wanted) {
    const std::vector<std::vector<std::size_t>> arguments = arguments_of_steps(einsum_.body);
    const std::vector<bool> reaches = steps_that_reach(arguments, wanted);
    std::vector<std::optional<Flow>> flows(values_.size());
    if (reaches.back()) flows.back() = through_reduction(adjoint);
    std::vector<OperandFlow> found;
    for (std::size_t s = values_.size(); s-- > 0;) {
      if (!flows[s] || !reaches[s]) continue;
      if (const auto* const value = std::get_if<OperandValue>(&einsum_.body.steps[s].op)) {
        const Formula formula = formula_of(*flows[s]);
        if (gradient::number_of(formula) != 0) found.push_back({value->operand, formula});
        continue;
      }
      if (is_large(*flows[s])) flows[s] = Flow{stored("_flow", all_names(), formula_of(*flows[s]), extents()), {}};
      const std::vector<std::optional<Flow>> to = flows_to_arguments(step_of(s, arguments[s]), *flows[s]);
      for (std::size_t a = 0; a < to.size(); ++a) {
        flows[arguments[s][a]] = to[a];
        if (to[a]) flows[arguments[s][a]]->value = with_result(to[a]->value);
      }
    }
    return found;
  }

 private:
  /// Whether a flow takes longer to compute for each argument again than to keep: it is multiplied with in each.
  bool is_large(const Flow& flow) {
    constexpr std::size_t most_parts = 64;
    if (flow.value == small_ && flow.sides.empty()) return false;
    std::size_t parts = 0;
    build::for_each_part(formula_of(flow), [&](const Formula&) { ++parts; });
    if (parts <= most_parts) small_ = flow.value;
    return parts > most_parts;
  }

  std::vector<bool> steps_that_reach(const std::vector<std::vector<std::size_t>>& arguments,
                                     const std::vector<bool>& wanted) const {
    std::vector<bool> reaches(arguments.size());
    for (std::size_t s = 0; s < arguments.size(); ++s) {
      const auto* const value = std::get_if<OperandValue>(&einsum_.body.steps[s].op);
      reaches[s] = value != nullptr ? wanted[value->operand]
                                    : std::any_of(arguments[s].begin(), arguments[s].end(),
                                                  [&](std::size_t a) { return reaches[a]; });
      reaches[s] = reaches[s] && is_float(einsum_.body.steps[s].type);
    }
    return reaches;
  }

  StepFormulas step_of(std::size_t s, const std::vector<std::size_t>& arguments) const {
    StepFormulas step{einsum_.body.steps[s], {}, values_[s]};
    for (const std::size_t argument : arguments) step.arguments.push_back(values_[argument]);
    const EinGraph& graph = growing_.graph;
    step.is_of_squares =
        is_unary(step.step, UnaryFunction::sqrt) && adds_up(graph, vertex_, arguments.front(), is_square);
    const bool may_be_infinite =
        std::holds_alternative<ApplyUnary>(step.step.op) || is_binary(step.step, BinaryFunction::divide);
    step.is_positive = may_be_infinite && is_positive(graph, vertex_, arguments.back());
    return step;
  }

  /// g / b * a, where the result z is a / b, is g * z: of a softmax, say.
  Formula with_result(const Formula& flow) const {
    if (!computed_ || !is_formula(*computed_, BinaryFunction::divide) || !is_formula(flow, BinaryFunction::multiply))
      return flow;
    const Formula& quotient = flow.arguments().front();
    const bool is_result = is_formula(quotient, BinaryFunction::divide) &&
                           quotient.arguments().back() == computed_->arguments().back() &&
                           flow.arguments().back() == computed_->arguments().front();
    return is_result ? product(quotient.arguments().front(), values_.back()) : flow;
  }
  static bool is_formula(const Formula& formula, BinaryFunction function) {
    const auto* const binary = std::get_if<build::Binary>(&formula.op());
    return binary != nullptr && binary->function == function;
  }

  /// What flows back to the body at each binding of the labels.
  std::optional<Flow> through_reduction(const Formula& adjoint) {
    if (!einsum_.reducer) return Flow{adjoint, {}};
    switch (*einsum_.reducer) {
      case Reducer::sum: return Flow{adjoint, {}};
      case Reducer::mean: return Flow{quotient(adjoint, build::number(count_of_reduced())), {}};
      case Reducer::max:
      case Reducer::min: return to_those_that_attain(adjoint);
      case Reducer::prod: return Flow{product(adjoint, product_of_others()), {}};
      case Reducer::logsumexp: return to_shares(adjoint);
      case Reducer::any:
      case Reducer::all:
      case Reducer::argmax:
      case Reducer::argmin: return std::nullopt;
    }
    return std::nullopt;
  }

  double count_of_reduced() const {
    double count = 1;
    for (const std::size_t label : einsum_.reduced) count *= static_cast<double>(einsum_.labels[label].extent.value());
    return count;
  }

  std::vector<std::string> names_at(const std::vector<std::size_t>& labels) const {
    std::vector<std::string> names;
    for (const std::size_t label : labels) names.push_back(names_[label]);
    return names;
  }
  std::vector<std::string> output_names() const { return names_at(einsum_.output); }
  std::vector<std::string> all_names() const {
    std::vector<std::string> names = output_names();
    for (const std::size_t label : einsum_.reduced) names.push_back(names_[label]);
    return names;
  }

  std::map<std::string, Extent> extents() const {
    std::map<std::string, Extent> extents;
    for (std::size_t l = 0; l < names_.size(); ++l) extents[names_[l]] = einsum_.labels[l].extent;
    return extents;
  }

  /// A tensor of what a formula is, over these labels.
  Formula stored(const std::string& what, const std::vector<std::string>& labels, const Formula& value,
                 std::map<std::string, Extent> extents) {
    build::Definition formula{{vertex_.name + what, {}}, build::names(labels), build::expr_of(value)};
    const VertexId id = growing_.define({vertex_.where, std::move(formula), std::move(extents)});
    return build::element(growing_.graph[id].name, labels);
  }

  /// The result, which is what is read of it.
  Formula result() const { return build::element(vertex_.name, output_names()); }

  /// max and min: evenly to all positions that attain it. Computed values are stored, so that what is compared is what
  /// was reduced, to the last bit.
  Flow to_those_that_attain(const Formula& adjoint) {
    const bool is_plain = std::holds_alternative<OperandValue>(einsum_.body.steps.back().op);
    Formula value = values_.back();
    Formula extreme = result();
    if (!is_plain) {
      value = stored("_of", all_names(), value, extents());
      extreme = stored("_again", output_names(), reduce(*einsum_.reducer, names_at(einsum_.reduced), value), extents());
    }
    const Formula attains = apply(BinaryFunction::equal, value, extreme);
    const Formula count = stored(
        "_times", output_names(),
        reduce(Reducer::sum, names_at(einsum_.reduced), build::cast(compute_type(vertex_.dtype), attains)), extents());
    return {quotient(adjoint, count), {{attains, true}}};
  }

  /// prod: of all others, without a division by one that may be 0.
  Formula product_of_others() {
    std::map<std::string, Extent> all = extents();
    build::LabelForms others;
    std::vector<std::string> reduced;
    std::optional<Formula> is_itself;
    for (const std::size_t label : einsum_.reduced) {
      std::string name = build::fresh_name(names_[label] + "_other", [&](const std::string& each) {
        return all.count(each) == 0 && growing_.reserved.count(each) == 0;
      });
      all[name] = einsum_.labels[label].extent;
      others[names_[label]] = build::index(name);
      const Formula equal = apply(BinaryFunction::equal, build::name(name), build::name(names_[label]));
      is_itself = is_itself ? apply(BinaryFunction::multiply, *is_itself, equal) : equal;
      reduced.push_back(std::move(name));
    }
    const Formula factor = where(*is_itself, build::number(1), with_labels(values_.back(), others));
    return stored("_of_others", all_names(), reduce(Reducer::prod, reduced, factor), std::move(all));
  }

  /// logsumexp: to each its share, a softmax. Of nothing but -inf there are none.
  Flow to_shares(const Formula& adjoint) const {
    const Formula lowest = build::number(-std::numeric_limits<double>::infinity());
    const Formula share = apply(UnaryFunction::exp, difference(values_.back(), result()));
    return {product(adjoint, share), {{apply(BinaryFunction::equal, result(), lowest), false}}};
  }

  const Vertex vertex_;  // the graph grows
  const EinSum& einsum_;
  const GrowingGraph& growing_;
  std::vector<std::string> names_;
  std::vector<Formula> values_;      ///< of each step; the result itself, where that is stored as it is
  std::optional<Formula> computed_;  ///< how it was computed then
  std::optional<Formula> small_;     ///< a flow that is not large
};

}  // namespace

std::vector<OperandFlow> flows_to_operands(VertexId vertex, const Formula& adjoint, const std::vector<bool>& wanted,
                                           const GrowingGraph& growing) {
  return EinSumFlows(growing.graph[vertex], growing).run(adjoint, wanted);
}

}  // namespace einrel::gradient
