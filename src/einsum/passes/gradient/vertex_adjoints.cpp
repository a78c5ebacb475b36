#include "einsum/passes/gradient/vertex_adjoints.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "einsum/expr/scalar_expr.h"
#include "einsum/front/build/formula_type.h"
#include "einsum/front/build/fresh_name.h"
#include "einsum/front/build/from_graph.h"
#include "einsum/front/build/substitute.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/graph/vertex_key.h"
#include "einsum/passes/gradient/arithmetic.h"
#include "einsum/passes/gradient/shared_parts.h"

namespace einrel::gradient {

using build::Formula;

namespace {

/// What flows back through one EinSum.
class EinSumAdjoints {
 public:
  EinSumAdjoints(Vertex vertex, const GrowingGraph& growing, const Signs& signs)
      : vertex_(std::move(vertex)),
        einsum_(*einsum_of(vertex_)),
        growing_(growing),
        signs_(signs.of_steps(vertex_)),
        names_(label_names(vertex_)),
        first_(first_equal_steps(einsum_.body)),
        type_of_([this](const std::string& name) { return growing_.graph[growing_.find(name)].dtype; }) {
    values_ = build::formulas_of(vertex_, growing.graph, names_);
    const bool is_stored = !einsum_.reducer && vertex_.dtype == einsum_.body.type() && values_.size() > 1;
    if (!is_stored) return;
    computed_ = values_.back();
    values_.back() = result();
  }

  std::vector<OperandAdjoint> run(const Formula& adjoint, const std::vector<bool>& wanted) {
    std::vector<std::vector<std::size_t>> arguments = arguments_of_steps(einsum_.body);
    for (std::vector<std::size_t>& of_step : arguments) {
      for (std::size_t& argument : of_step) argument = first_[argument];
    }
    const std::vector<bool> reaches = steps_that_reach(arguments, wanted);
    std::vector<std::optional<GuardedAdjoint>> adjoints(values_.size());
    std::map<std::size_t, Formula> found;  // per operand
    if (reaches.back()) add(adjoints, values_.size() - 1, through_reduction(adjoint), found);
    for (std::size_t s = values_.size(); s-- > 0;) {
      if (!adjoints[s]) continue;
      const std::vector<std::optional<GuardedAdjoint>> to =
          adjoints_of_arguments(step_of(s, arguments[s]), *adjoints[s]);
      for (std::size_t a = to.size(); a-- > 0;) {
        if (reaches[arguments[s][a]]) add(adjoints, arguments[s][a], to[a], found);
      }
      adjoints[s].reset();
    }
    return shared(found);
  }

 private:
  /// Adds what flows back to a step: what comes to an operand is `found`.
  void add(std::vector<std::optional<GuardedAdjoint>>& adjoints, std::size_t step,
           std::optional<GuardedAdjoint> adjoint, std::map<std::size_t, Formula>& found) {
    if (!adjoint) return;
    adjoint->value = typed(with_result(adjoint->value), step);
    const auto* const value = std::get_if<OperandValue>(&einsum_.body.steps[step].op);
    if (value == nullptr) {
      adjoints[step] = adjoints[step] ? together(*adjoint, *adjoints[step]) : std::move(*adjoint);
      adjoints[step]->value = typed(adjoints[step]->value, step);
      return;
    }
    const Formula formula = typed(formula_of(*adjoint), step);
    if (number_of(formula) == 0) return;
    const auto [known, is_new] = found.insert({value->operand, formula});
    if (!is_new) known->second = sum(formula, known->second);
  }

  /// Of the type that a step is computed in, if it has none of its own.
  Formula typed(const Formula& value, std::size_t step) {
    return number_of(value) || type_of_(value) ? value : build::cast(einsum_.body.steps[step].type, value);
  }

  std::vector<OperandAdjoint> shared(const std::map<std::size_t, Formula>& found) {
    std::vector<Formula> formulas;
    for (const auto& [operand, formula] : found) formulas.push_back(formula);
    formulas = with_shared_parts(
        formulas, {[this](const Formula& part) { return type_of_(part); },
                   [this](const Formula& part) {
                     const std::set<std::string> used = build::names_in(part);
                     std::vector<std::string> labels = all_names();
                     std::erase_if(labels, [&](const std::string& label) { return used.count(label) == 0; });
                     return stored("_part", labels, part, extents());
                   }});
    std::vector<OperandAdjoint> adjoints;
    for (const auto& [operand, formula] : found) adjoints.push_back({operand, formulas[adjoints.size()]});
    return adjoints;
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
    if (arguments.empty()) return step;
    step.is_of_squares = signs_.add_squares[arguments.front()];
    step.is_positive = signs_.are_positive[arguments.back()];
    return step;
  }

  /// g / b * a, where the result z is a / b, is g * z: of a softmax, say.
  Formula with_result(const Formula& adjoint) const {
    if (!computed_ || !is_formula(*computed_, BinaryFunction::divide) || !is_formula(adjoint, BinaryFunction::multiply))
      return adjoint;
    const Formula& quotient = adjoint.arguments().front();
    const bool is_result = is_formula(quotient, BinaryFunction::divide) &&
                           quotient.arguments().back() == computed_->arguments().back() &&
                           adjoint.arguments().back() == computed_->arguments().front();
    return is_result ? product(quotient.arguments().front(), values_.back()) : adjoint;
  }

  static bool is_formula(const Formula& formula, BinaryFunction function) {
    const auto* const binary = std::get_if<build::Binary>(&formula.op());
    return binary != nullptr && binary->function == function;
  }

  /// What flows back to the body at each binding of the labels.
  std::optional<GuardedAdjoint> through_reduction(const Formula& adjoint) {
    if (!einsum_.reducer) return GuardedAdjoint{adjoint, {}};
    switch (*einsum_.reducer) {
#define EINREL_REDUCER(id, name, usage, meaning, result, traits, kept, start, each, fold, continues, slope, ...) \
  case Reducer::id: {                                                                                            \
    return slope;                                                                                                \
  }
#include "einsum/expr/functions.def"
    }
    return std::nullopt;
  }

  static GuardedAdjoint evenly(const Formula& value) { return {value, {}}; }

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

  /// A tensor of what a formula is, over these labels, of the type that it is computed in.
  Formula stored(const std::string& what, const std::vector<std::string>& labels, const Formula& value,
                 std::map<std::string, Extent> extents) {
    const std::optional<DType> type = type_of_(value);
    const DType computed = compute_type(type.value_or(einsum_.body.type()));
    const Formula typed = type == computed ? value : build::cast(computed, value);
    const VertexId id = growing_.define({vertex_.where, vertex_.name + what, labels, typed, std::move(extents)});
    return build::element(growing_.graph[id].name, labels);
  }

  /// The result of these values, as they are computed.
  Formula again(const Formula& value) {
    return stored("_again", output_names(), reduce(*einsum_.reducer, names_at(einsum_.reduced), value), extents());
  }

  /// The result, which is what is read of it.
  Formula result() const { return build::element(vertex_.name, output_names()); }

  /// max and min: evenly to all positions that attain it. Computed values are stored, so that what is compared is what
  /// was reduced, to the last bit.
  GuardedAdjoint to_those_that_attain(const Formula& adjoint) {
    const bool is_plain = std::holds_alternative<OperandValue>(einsum_.body.steps.back().op);
    Formula value = values_.back();
    Formula extreme = result();
    if (!is_plain) {
      value = stored("_of", all_names(), value, extents());
      extreme = again(value);
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
  GuardedAdjoint to_shares(const Formula& adjoint) {
    const Formula lowest = build::number(-std::numeric_limits<double>::infinity());
    const Formula sum = is_narrow(vertex_.dtype) ? again(values_.back()) : result();  // shares add up to 1
    const Formula share = apply(UnaryFunction::exp, difference(values_.back(), sum));
    return {product(adjoint, share), {{apply(BinaryFunction::equal, sum, lowest), false}}};
  }

  const Vertex vertex_;  // the graph grows
  const EinSum& einsum_;
  const GrowingGraph& growing_;
  const Signs::OfSteps signs_;
  std::vector<std::string> names_;
  std::vector<std::size_t> first_;  ///< per step, the first that is the same
  build::FormulaTypes type_of_;
  std::vector<Formula> values_;      ///< of each step; the result itself, where that is stored as it is
  std::optional<Formula> computed_;  ///< how it was computed then
};

}  // namespace

std::vector<OperandAdjoint> adjoints_of_operands(VertexId vertex, const Formula& adjoint,
                                                 const std::vector<bool>& wanted, const GrowingGraph& growing,
                                                 const Signs& signs) {
  return EinSumAdjoints(growing.graph[vertex], growing, signs).run(adjoint, wanted);
}

}  // namespace einrel::gradient
