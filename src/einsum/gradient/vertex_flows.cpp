#include "einsum/gradient/vertex_flows.h"

#include <algorithm>
#include <limits>

#include "einsum/build/from_graph.h"
#include "einsum/build/substitute.h"
#include "einsum/gradient/arithmetic.h"
#include "einsum/typing.h"
#include "einsum/vertex_facts.h"

namespace einrel::gradient {

using build::Formula;

namespace {

/// Whether two steps compute the same.
bool is_same(const ScalarExpr& body, const std::vector<std::size_t>& starts, std::size_t a, std::size_t b) {
  const auto at = [&](std::size_t step) { return body.steps.begin() + static_cast<std::ptrdiff_t>(step); };
  return std::equal(at(starts[a]), at(a) + 1, at(starts[b]), at(b) + 1);
}

/// Whether a step of a vertex is, or adds up, nothing but terms for which is_term(body, step) holds: sq(x) + sq(y), or
/// sum[i] sq(X[i]), also in a vertex of its own.
template <class IsTerm>
bool adds_up(const EinGraph& graph, const Vertex& vertex, std::size_t step, const IsTerm& is_term) {
  struct Part {
    const Vertex* vertex;
    std::size_t step;
    int depth;
  };
  constexpr int most_depth = 8;  // programs add up no sums of sums of sums
  std::vector<Part> waiting{{&vertex, step, 0}};
  while (!waiting.empty()) {
    const auto [of, at, depth] = waiting.back();
    waiting.pop_back();
    const ScalarExpr& body = einsum_of(*of)->body;
    if (is_term(body, at)) continue;
    if (const auto* const value = std::get_if<OperandValue>(&body.steps[at].op)) {
      const Vertex& operand = graph[of->inputs[value->operand]];
      const EinSum* const einsum = einsum_of(operand);
      if (einsum == nullptr || depth == most_depth) return false;
      if (einsum->reducer && *einsum->reducer != Reducer::sum && *einsum->reducer != Reducer::mean) return false;
      waiting.push_back({&operand, einsum->body.steps.size() - 1, depth + 1});
      continue;
    }
    const auto* const binary = std::get_if<ApplyBinary>(&body.steps[at].op);
    if (binary == nullptr || binary->function != BinaryFunction::add) return false;
    const std::size_t left = subexpression_starts(body)[at - 1] - 1;
    waiting.insert(waiting.end(), {{of, left, depth}, {of, at - 1, depth}});
  }
  return true;
}

bool is_unary(const ScalarStep& step, UnaryFunction function) {
  const auto* const unary = std::get_if<ApplyUnary>(&step.op);
  return unary != nullptr && unary->function == function;
}

/// sq(x) or x * x
bool is_square(const ScalarExpr& body, std::size_t at) {
  if (is_unary(body.steps[at], UnaryFunction::sq)) return true;
  const auto* const binary = std::get_if<ApplyBinary>(&body.steps[at].op);
  if (binary == nullptr || binary->function != BinaryFunction::multiply) return false;
  const std::vector<std::size_t> starts = subexpression_starts(body);
  return is_same(body, starts, starts[at - 1] - 1, at - 1);
}

bool is_exponential(const ScalarExpr& body, std::size_t at) { return is_unary(body.steps[at], UnaryFunction::exp); }

/// What flows back through one EinSum.
class EinSumFlows {
 public:
  EinSumFlows(const Vertex& vertex, const GrowingGraph& growing)
      : vertex_(vertex), einsum_(*einsum_of(vertex_)), growing_(growing), names_(label_names(vertex_)) {
    values_ = build::formulas_of(vertex_, growing.graph, names_);
    const bool is_stored = !einsum_.reducer && vertex_.dtype == einsum_.body.type() && values_.size() > 1;
    if (!is_stored) return;
    computed_ = values_.back();
    values_.back() = result();
  }

  std::vector<OperandFlow> run(const Formula& adjoint, const std::vector<bool>& wanted) {
    const std::vector<std::vector<std::size_t>> arguments = arguments_of_steps();
    const std::vector<bool> reaches = steps_that_reach(arguments, wanted);
    std::vector<std::optional<Flow>> flows(values_.size());
    if (reaches.back()) flows.back() = through_reduction(adjoint);
    std::vector<OperandFlow> found;
    for (std::size_t s = values_.size(); s-- > 0;) {
      if (!flows[s] || !reaches[s]) continue;
      if (const auto* const value = std::get_if<OperandValue>(&einsum_.body.steps[s].op)) {
        const Formula formula = formula_of(*flows[s]);
        if (number_of(formula) != 0) found.push_back({value->operand, formula});
        continue;
      }
      const std::vector<std::optional<Flow>> to = flows_to_arguments(step_of(s, arguments[s]), *flows[s]);
      for (std::size_t a = 0; a < to.size(); ++a) {
        flows[arguments[s][a]] = to[a];
        if (to[a]) flows[arguments[s][a]]->value = with_result(to[a]->value);
      }
    }
    return found;
  }

 private:
  std::vector<std::vector<std::size_t>> arguments_of_steps() const {
    std::vector<std::vector<std::size_t>> arguments;
    std::vector<std::size_t> stack;
    for (const ScalarStep& step : einsum_.body.steps) {
      const auto first = stack.end() - static_cast<std::ptrdiff_t>(arity(step));
      arguments.emplace_back(first, stack.end());
      stack.erase(first, stack.end());
      stack.push_back(arguments.size() - 1);
    }
    return arguments;
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
    const auto* const binary = std::get_if<ApplyBinary>(&step.step.op);
    step.is_of_squares =
        is_unary(step.step, UnaryFunction::sqrt) && adds_up(growing_.graph, vertex_, arguments.front(), is_square);
    step.is_positive = binary != nullptr && binary->function == BinaryFunction::divide &&
                       adds_up(growing_.graph, vertex_, arguments.back(), is_exponential);
    return step;
  }

  /// g / b * a, where the result z is a / b, is g * z: of a softmax, say.
  Formula with_result(const Formula& flow) const {
    if (!computed_ || !is_binary(*computed_, BinaryFunction::divide) || !is_binary(flow, BinaryFunction::multiply))
      return flow;
    const Formula& quotient = flow.arguments().front();
    const bool is_result = is_binary(quotient, BinaryFunction::divide) &&
                           quotient.arguments().back() == computed_->arguments().back() &&
                           flow.arguments().back() == computed_->arguments().front();
    return is_result ? product(quotient.arguments().front(), values_.back()) : flow;
  }
  static bool is_binary(const Formula& formula, BinaryFunction function) {
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

  static Formula read(const std::string& tensor, const std::vector<std::string>& labels) {
    std::vector<build::Index> indices;
    for (const std::string& label : labels) indices.push_back(build::index(label));
    return build::element(tensor, std::move(indices));
  }

  /// A tensor of what a formula is, over these labels.
  Formula stored(const std::string& what, const std::vector<std::string>& labels, const Formula& value,
                 std::map<std::string, Extent> extents) {
    build::Definition formula{{vertex_.name + what, {}}, build::names(labels), build::expr_of(value)};
    const VertexId id = growing_.define({vertex_.where, std::move(formula), std::move(extents)});
    return read(growing_.graph[id].name, labels);
  }

  /// The result, which is what is read of it.
  Formula result() const { return read(vertex_.name, output_names()); }

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
      std::string name = names_[label] + "_other";
      while (all.count(name) != 0 || growing_.reserved.count(name) != 0) name += "_";
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
};

}  // namespace

std::vector<OperandFlow> flows_to_operands(VertexId vertex, const Formula& adjoint, const std::vector<bool>& wanted,
                                           const GrowingGraph& growing) {
  return EinSumFlows(growing.graph[vertex], growing).run(adjoint, wanted);
}

}  // namespace einrel::gradient
