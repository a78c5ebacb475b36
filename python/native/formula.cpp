#include "formula.h"

#include <einrel/error.h>

#include <algorithm>
#include <functional>
#include <iterator>

namespace einrel::python {
namespace {

using api::Expression;
using api::Labels;
using Arguments = std::vector<Expression>;

template <Expression (*function)(const Expression&, const Expression&)>
Expression binary(const Labels&, const Arguments& x) {
  return function(x[0], x[1]);
}

template <Expression (*function)(const Expression&)>
Expression unary(const Labels&, const Arguments& x) {
  return function(x[0]);
}

template <class Operator>
Expression operation(const Labels&, const Arguments& x) {
  return Operator()(x[0], x[1]);
}

template <Expression (*function)(const Labels&, const Expression&)>
Expression over(const Labels& labels, const Arguments& x) {
  return function(labels, x[0]);
}

template <Expression (*function)(const Labels&, const Expression&, const Expression&)>
Expression over_two(const Labels& labels, const Arguments& x) {
  return function(labels, x[0], x[1]);
}

Expression negative(const Labels&, const Arguments& x) { return -x[0]; }

Expression where(const Labels&, const Arguments& x) { return api::where(x[0], x[1], x[2]); }

std::vector<Function> all_functions() {
  std::vector<Function> all{
      {"add", 2, false, operation<std::plus<>>},
      {"subtract", 2, false, operation<std::minus<>>},
      {"multiply", 2, false, operation<std::multiplies<>>},
      {"divide", 2, false, operation<std::divides<>>},
      {"less", 2, false, operation<std::less<>>},
      {"less_equal", 2, false, operation<std::less_equal<>>},
      {"greater", 2, false, operation<std::greater<>>},
      {"greater_equal", 2, false, operation<std::greater_equal<>>},
      {"equal", 2, false, operation<std::equal_to<>>},
      {"not_equal", 2, false, operation<std::not_equal_to<>>},
      {"pow", 2, false, binary<api::pow>},
      {"maximum", 2, false, binary<api::maximum>},
      {"minimum", 2, false, binary<api::minimum>},
      {"pad", 2, false, binary<api::pad>},
      {"where", 3, false, where},
      {"negative", 1, false, negative},
      {"complex", 2, false, binary<api::complex>},
      {"conj", 1, false, unary<api::conj>},
      {"real", 1, false, unary<api::real>},
      {"imag", 1, false, unary<api::imag>},
      {"softmax", 1, true, over<api::softmax>},
      {"log_softmax", 1, true, over<api::logsoftmax>},
      {"inv", 1, true, over<api::inverse>},
      {"qr_q", 1, true, over<api::qr_q>},
      {"qr_r", 1, true, over<api::qr_r>},
      {"layer_norm", 2, true, over_two<api::layernorm>},
      {"rms_norm", 2, true, over_two<api::rmsnorm>},
  };
  for (const api::NamedFunction& function : api::named_functions())
    all.push_back(
        {function.name, 1, false, [call = function.call](const Labels&, const Arguments& x) { return call(x[0]); }});
  for (const api::NamedReduction& reduction : api::named_reductions())
    all.push_back({reduction.name, 1, true,
                   [call = reduction.call](const Labels& labels, const Arguments& x) { return call(labels, x[0]); }});
  return all;
}

const std::vector<Function>& functions() {
  static const std::vector<Function> all = all_functions();
  return all;
}

}  // namespace

const Function& function_named(const std::string& name) {
  const auto found = std::find_if(functions().begin(), functions().end(),
                                  [&](const Function& function) { return function.name == name; });
  if (found == functions().end()) throw api::UserError("there is no function '" + name + "'");
  return *found;
}

void Formula::append(const Formula& other) { steps_.insert(steps_.end(), other.steps_.begin(), other.steps_.end()); }

Formula Formula::label(std::size_t label) {
  Formula result;
  result.steps_.emplace_back(LabelValue{label});
  return result;
}

Formula Formula::element(std::size_t operand, const std::vector<Formula>& indices) {
  Formula result;
  for (const Formula& index : indices) result.append(index);
  result.steps_.emplace_back(Element{operand, indices.size()});
  return result;
}

Formula Formula::apply(const std::string& function, const std::vector<Formula>& arguments,
                       std::vector<std::size_t> labels) {
  const Function& called = function_named(function);
  if (called.arity != arguments.size() || called.has_labels == labels.empty())
    throw api::UserError("wrong arguments for '" + function + "'");
  Formula result;
  for (const Formula& argument : arguments) result.append(argument);
  result.steps_.emplace_back(Call{&called, std::move(labels)});
  return result;
}

Formula Formula::cast(api::DType dtype, const Formula& value) {
  Formula result = value;
  result.steps_.emplace_back(Cast{dtype});
  return result;
}

/// What is known after some steps of a formula.
struct Formula::Evaluation {
  const std::vector<api::Variable>& operands;
  const Labels& labels;
  Arguments values = {};

  Arguments take(std::size_t count) {
    const auto first = values.end() - static_cast<std::ptrdiff_t>(count);
    Arguments taken(std::make_move_iterator(first), std::make_move_iterator(values.end()));
    values.erase(first, values.end());
    return taken;
  }
  void operator()(const Number& number) { values.emplace_back(number.value); }
  void operator()(const Whole& number) { values.emplace_back(number.value); }
  void operator()(const LabelValue& label) { values.emplace_back(labels.at(label.label)); }
  void operator()(const Element& element) {
    const Arguments indices = take(element.rank);
    values.push_back(operands.at(element.operand).element(indices));
  }
  void operator()(const Call& call) {
    Labels named;
    for (const std::size_t label : call.labels) named.push_back(labels.at(label));
    const Arguments arguments = take(call.function->arity);
    values.push_back(call.function->call(named, arguments));
  }
  void operator()(const Cast& cast) { values.push_back(api::cast(cast.dtype, take(1).front())); }
};

Expression Formula::of(const std::vector<api::Variable>& operands, const Labels& labels) const {
  Evaluation evaluation{operands, labels};
  for (const Step& step : steps_) std::visit(evaluation, step);
  return evaluation.values.back();
}

}  // namespace einrel::python
