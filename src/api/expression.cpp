#include <einrel/error.h>
#include <einrel/expression.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "api/border.h"
#include "api/expression_data.h"
#include "api/tensor_data.h"
#include "base/source.h"
#include "base/text.h"
#include "einsum/front/build/substitute.h"
#include "einsum/front/text/lexer.h"
#include "einsum/graph/ein_graph.h"

namespace einrel::api {
namespace {

using Statement = ExpressionAccess::Statement;
using Data = ExpressionAccess::Data;

/// So that a name cannot smuggle other text into a program.
void check_name(const std::string& name) {
  std::vector<Diagnostic> errors;
  const std::vector<Token> tokens = tokenize(SourceText("name", name), errors);
  const bool is_one = errors.empty() && tokens.front().kind == TokenKind::name && tokens.front().text == name;
  if (is_one && !is_reserved(name)) return;
  throw UserError(
      fmt::format("'{}' is no name: a name is an identifier that is no word of the language", printable(name)));
}

bool same(const Label& a, const Label& b) { return a.name() == b.name() && a.extent() == b.extent(); }

void add_labels(Labels& to, const Labels& labels) {
  for (const Label& label : labels) {
    if (std::none_of(to.begin(), to.end(), [&](const Label& known) { return same(known, label); })) to.push_back(label);
  }
}

/// Adds what a part of a formula needs to what the whole needs.
void add_needs(Data& to, const Data& part) {
  add_labels(to.labels, part.labels);
  for (const auto& statement : part.reads) {
    if (std::find(to.reads.begin(), to.reads.end(), statement) == to.reads.end()) to.reads.push_back(statement);
  }
}

std::vector<std::string> names_of(const Labels& labels) {
  std::vector<std::string> names;
  for (const Label& label : labels) names.push_back(label.name());
  return names;
}

/// A formula made of others, with all that these need.
Expression made(build::Formula formula, std::initializer_list<Expression> parts, Labels labels = {}) {
  Data data{std::move(formula), std::move(labels), {}};
  for (const Expression& part : parts) add_needs(data, ExpressionAccess::data(part));
  return ExpressionAccess::expression(std::move(data));
}

const build::Formula& formula_of(const Expression& expression) { return ExpressionAccess::data(expression).formula; }

Expression apply(UnaryFunction function, const Expression& x) {
  return made(build::apply(function, formula_of(x)), {x});
}

Expression apply(BinaryFunction function, const Expression& a, const Expression& b) {
  return made(build::apply(function, formula_of(a), formula_of(b)), {a, b});
}

Expression of_complex(ComplexFunction function, const Expression& z) {
  return made(build::Formula(build::ComplexCall{function}, {formula_of(z)}), {z});
}

Expression reduce(Reducer reducer, const Labels& over, const Expression& x) {
  return made(build::reduce(reducer, names_of(over), formula_of(x)), {x}, over);
}

/// A macro of the language.
Expression call(const std::string& macro, const Labels& labels, std::initializer_list<Expression> arguments) {
  std::vector<build::Formula> formulas;
  for (const Expression& argument : arguments) formulas.push_back(formula_of(argument));
  return made(build::call(macro, names_of(labels), std::move(formulas)), arguments, labels);
}

/// Linear algebra.
Expression call(OpaqueResult result, const Labels& matrix, const Expression& x) {
  const std::size_t count = matrix_labels(result.function);
  if (matrix.size() != count) {
    throw UserError(fmt::format(
        "{0} takes the labels of rows and columns{1}, {2} of them, not {3}: {0}({{i, j{4}}}, a(i, j))", name_of(result),
        count == 2 ? "" : " and of what is between the factors", count, matrix.size(), count == 2 ? "" : ", k"));
  }
  return made(build::call(result, names_of(matrix), formula_of(x)), {x}, matrix);
}

/// With its sign in front, as it would be written.
build::Formula number(double value) {
  if (std::isnan(value)) throw UserError("NaN is no number of the language: compute it, as in 0.0 / 0.0");
  if (!std::signbit(value)) return build::number(value);
  return build::apply(UnaryFunction::negate, build::number(-value));
}

build::Formula whole_number(std::int64_t value) {
  const bool has_opposite = value != std::numeric_limits<std::int64_t>::min();
  if (value >= 0 || !has_opposite) return build::whole_number(value);
  return build::apply(UnaryFunction::negate, build::whole_number(-value));
}

/// A number, with or without a sign.
std::optional<double> number_of(const build::Formula& formula) {
  const auto* const unary = std::get_if<build::Unary>(&formula.op());
  const bool is_negated = unary != nullptr && unary->function == UnaryFunction::negate;
  const auto* const number = std::get_if<build::Number>(&(is_negated ? formula.arguments().front() : formula).op());
  if (number == nullptr) return std::nullopt;
  return is_negated ? -number->value : number->value;
}

bool reads_tensor(const build::Formula& formula) {
  bool reads = false;
  build::for_each_part(
      formula, [&](const build::Formula& part) { reads = reads || std::holds_alternative<build::Access>(part.op()); });
  return reads;
}

std::vector<build::Group> groups_of(const std::vector<LabelGroup>& groups) {
  std::vector<build::Group> result;
  for (const LabelGroup& group : groups) result.push_back(build::names(names_of(group.labels())));
  return result;
}

}  // namespace

Variable::Statement::~Statement() {
  std::vector<std::shared_ptr<Statement>> waiting = std::move(reads);
  while (!waiting.empty()) {
    const std::shared_ptr<Statement> statement = std::move(waiting.back());
    waiting.pop_back();
    if (statement.use_count() > 1) continue;
    for (std::shared_ptr<Statement>& read : statement->reads) waiting.push_back(std::move(read));
    statement->reads.clear();
  }
}

Label::Label(std::string name, std::optional<std::int64_t> extent) : name_(std::move(name)), extent_(extent) {
  at_border([&] { check_name(name_); });
  if (extent_ && *extent_ < 0)
    throw UserError(fmt::format("label '{}' has extent {}: an extent is 0 or more", name_, *extent_));
}

Expression::Expression(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
Expression::Expression(double value) : Expression(made(number(value), {})) {}
Expression::Expression(const Label& label) : Expression(made(build::name(label.name()), {}, {label})) {}
Expression Expression::of_integer(std::int64_t value) { return made(whole_number(value), {}); }
void Expression::too_large() { throw UserError("a whole number in a formula lies between -2^63 and 2^63-1"); }

Variable::Variable(std::shared_ptr<Statement> statement) : statement_(std::move(statement)) {}
const std::string& Variable::name() const { return statement_->name; }

Expression Variable::element(const std::vector<Expression>& indices) const {
  Data data{build::name(name()), {}, {}};
  std::vector<build::Index> positions;
  std::vector<build::Formula> computed;
  for (const Expression& index : indices) {
    std::optional<build::Index> position = build::index_of(formula_of(index));
    if (!position && reads_tensor(formula_of(index))) {
      position = build::Index{{}, 0, {}, true};
      computed.push_back(formula_of(index));
    }
    if (!position) {
      throw UserError(
          fmt::format("index {} of an element of {} is no sum of labels with whole coefficients and a whole "
                      "number, as in x(2 * y + dy - 1), and no element of another variable",
                      positions.size(), name()));
    }
    positions.push_back(std::move(*position));
    add_needs(data, ExpressionAccess::data(index));
  }
  data.formula = build::Formula(build::Access{{name(), {}}, std::move(positions), std::nullopt}, std::move(computed));
  data.reads.push_back(statement_);
  return ExpressionAccess::expression(std::move(data));
}

Variable input(const std::string& name, const Labels& labels, DType dtype) {
  at_border([&] { check_name(name); });
  build::InputDecl declaration{{name, {}}, build::names(names_of(labels)), inside(dtype), is_complex(dtype)};
  auto statement = std::make_shared<Statement>(name, build::Statement{{}, build::Inputs{{std::move(declaration)}}});
  statement->labels = labels;
  return ExpressionAccess::variable(std::move(statement));
}

Expression scalar(const std::string& name, std::optional<double> value) {
  at_border([&] { check_name(name); });
  if (value && std::isnan(*value)) number(*value);
  build::ScalarDecl declaration{{name, {}}, std::nullopt};
  if (value) declaration.value = build::Number{*value, std::nullopt};
  auto statement = std::make_shared<Statement>(name, build::Statement{{}, build::Scalars{{std::move(declaration)}}});
  return ExpressionAccess::expression({build::name(name), {}, {std::move(statement)}});
}

namespace {

/// The variable `name` that an equation about `of` defines.
std::shared_ptr<Statement> equation(const std::string& name, const std::string& of, const Labels& labels,
                                    const Expression& value, build::Equation::Kind kind) {
  const Data& data = ExpressionAccess::data(value);
  auto statement = std::make_shared<Statement>(name, build::Equation{of, names_of(labels), data.formula, kind});
  statement->labels = labels;
  add_labels(statement->labels, data.labels);
  statement->reads = data.reads;
  return statement;
}

}  // namespace

Variable define(const std::string& name, const Labels& labels, const Expression& value) {
  at_border([&] { check_name(name); });
  return ExpressionAccess::variable(equation(name, name, labels, value, build::Equation::Kind::definition));
}

Variable state(const std::string& name, const Labels& labels, const Expression& value) {
  at_border([&] { check_name(name); });
  return ExpressionAccess::variable(equation(name, name, labels, value, build::Equation::Kind::state));
}

Variable next(const Variable& state, const Labels& labels, const Expression& value) {
  const auto statement = equation(next_name(state.name()), state.name(), labels, value, build::Equation::Kind::next);
  statement->reads.push_back(ExpressionAccess::statement(state));
  return ExpressionAccess::variable(statement);
}

Expression iteration() { return ExpressionAccess::expression({build::name(iteration_name), {}, {}}); }

Variable view(const std::string& name, const std::vector<LabelGroup>& to, const Variable& source,
              const std::vector<LabelGroup>& from) {
  at_border([&] { check_name(name); });
  build::ViewDefinition definition{{name, {}}, groups_of(to), {source.name(), {}}, groups_of(from)};
  auto statement = std::make_shared<Statement>(name, build::Statement{{}, std::move(definition)});
  for (const auto* side : {&to, &from}) {
    for (const LabelGroup& group : *side) add_labels(statement->labels, group.labels());
  }
  statement->reads = {ExpressionAccess::statement(source)};
  return ExpressionAccess::variable(std::move(statement));
}

std::vector<Variable> gradient(const std::vector<std::string>& names, const Variable& of,
                               const std::vector<Variable>& by, const std::optional<Variable>& given) {
  at_border([&] {
    for (const std::string& name : names) check_name(name);
    if (names.empty() || names.size() != by.size())
      throw UserError(fmt::format("a gradient needs a name for each variable that it is taken by: {} for {}",
                                  counted(names.size(), "name"), counted(by.size(), "variable")));
  });
  build::Gradient gradient{build::names(names), {of.name(), {}}, {}, std::nullopt};
  std::vector<std::shared_ptr<Statement>> reads{ExpressionAccess::statement(of)};
  for (const Variable& variable : by) {
    gradient.variables.push_back({variable.name(), {}});
    reads.push_back(ExpressionAccess::statement(variable));
  }
  if (given) {
    gradient.seed = build::Name{given->name(), {}};
    reads.push_back(ExpressionAccess::statement(*given));
  }
  const auto all = std::make_shared<Statement>(names.front(), build::Statement{{}, std::move(gradient)});
  all->reads = std::move(reads);
  std::vector<Variable> results;
  for (const std::string& name : names) {
    auto result = std::make_shared<Statement>(name, std::monostate{});
    result->reads = {all};
    results.push_back(ExpressionAccess::variable(std::move(result)));
  }
  return results;
}

Optimiser sgd(const Expression& eta) { return {"sgd", {eta}}; }
Optimiser momentum(const Expression& eta, const Expression& mu) { return {"momentum", {eta, mu}}; }
Optimiser nesterov(const Expression& eta, const Expression& mu) { return {"nesterov", {eta, mu}}; }
Optimiser adam(const Expression& eta, const Expression& b1, const Expression& b2, const Expression& eps) {
  return {"adam", {eta, b1, b2, eps}};
}
Optimiser adamw(const Expression& eta, const Expression& decay, const Expression& b1, const Expression& b2,
                const Expression& eps) {
  return {"adamw", {eta, decay, b1, b2, eps}};
}

namespace {

std::shared_ptr<Statement> statement_of(const Minimize& minimize) {
  if (minimize.over.empty()) throw UserError("Minimize::over is empty: name the states that are to change");
  build::Minimize made{{minimize.loss.name(), {}}, {}, {minimize.by.name, {}}, {}};
  std::vector<std::shared_ptr<Statement>> reads{ExpressionAccess::statement(minimize.loss)};
  for (const Variable& variable : minimize.over) {
    made.over.push_back({variable.name(), {}});
    reads.push_back(ExpressionAccess::statement(variable));
  }
  for (const Expression& argument : minimize.by.arguments) {
    const Data& data = ExpressionAccess::data(argument);
    made.arguments.push_back(build::expr_of(data.formula));
    reads.insert(reads.end(), data.reads.begin(), data.reads.end());
  }
  auto statement = std::make_shared<Statement>("minimize", build::Statement{{}, std::move(made)});
  statement->reads = std::move(reads);
  return statement;
}

}  // namespace

build::Program program_of(const std::vector<Variable>& outputs, const Steps& steps) {
  if (outputs.empty()) throw UserError("a program needs a variable to compute: none is given");
  std::vector<std::shared_ptr<Statement>> wanted;
  for (const auto* const variables : {&outputs, &steps.next}) {
    for (const Variable& variable : *variables) wanted.push_back(ExpressionAccess::statement(variable));
  }
  for (const Minimize& minimize : steps.minimize) wanted.push_back(statement_of(minimize));
  if (steps.until) wanted.push_back(equation(until_name, until_name, {}, *steps.until, build::Equation::Kind::until));
  std::vector<const Statement*> ordered;  // those that are read first
  std::set<const Statement*> known;
  struct Visit {
    const Statement* statement;
    std::size_t next = 0;  // of its reads
  };
  std::vector<Visit> path;
  const auto enter = [&](const Statement* statement) {
    if (known.insert(statement).second) path.push_back({statement});
  };
  for (const std::shared_ptr<Statement>& each : wanted) {
    enter(each.get());
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.next < visit.statement->reads.size()) {
        enter(visit.statement->reads[visit.next++].get());
      } else {
        ordered.push_back(visit.statement);
        path.pop_back();
      }
    }
  }
  build::Dims dims;
  std::set<std::pair<std::string, std::int64_t>> declared;
  for (const Statement* statement : ordered) {
    for (const Label& label : statement->labels) {
      if (label.extent() && declared.insert({label.name(), *label.extent()}).second)
        dims.dims.push_back({{label.name(), {}}, *label.extent()});
    }
  }
  std::vector<std::variant<build::Statement, build::Equation>> statements;
  if (!dims.dims.empty()) statements.emplace_back(build::Statement{{}, std::move(dims)});
  for (const Statement* statement : ordered) {
    if (const auto* const given = std::get_if<build::Statement>(&statement->what)) statements.emplace_back(*given);
    if (const auto* const equation = std::get_if<build::Equation>(&statement->what)) statements.emplace_back(*equation);
  }
  build::Outputs names;
  for (const Variable& output : outputs) names.names.push_back({output.name(), {}});
  statements.emplace_back(build::Statement{{}, std::move(names)});
  return build::program_of(statements);
}

Expression operator+(const Expression& a, const Expression& b) { return apply(BinaryFunction::add, a, b); }
Expression operator-(const Expression& a, const Expression& b) { return apply(BinaryFunction::subtract, a, b); }
Expression operator*(const Expression& a, const Expression& b) { return apply(BinaryFunction::multiply, a, b); }
Expression operator/(const Expression& a, const Expression& b) { return apply(BinaryFunction::divide, a, b); }
Expression pow(const Expression& a, const Expression& b) { return apply(BinaryFunction::power, a, b); }
Expression operator-(const Expression& a) { return apply(UnaryFunction::negate, a); }

Expression operator<(const Expression& a, const Expression& b) { return apply(BinaryFunction::less, a, b); }
Expression operator<=(const Expression& a, const Expression& b) { return apply(BinaryFunction::less_equal, a, b); }
Expression operator>(const Expression& a, const Expression& b) { return apply(BinaryFunction::greater, a, b); }
Expression operator>=(const Expression& a, const Expression& b) { return apply(BinaryFunction::greater_equal, a, b); }
Expression operator==(const Expression& a, const Expression& b) { return apply(BinaryFunction::equal, a, b); }
Expression operator!=(const Expression& a, const Expression& b) { return apply(BinaryFunction::not_equal, a, b); }

inline namespace functions {

#define EINREL_SIGN(...)
#define EINREL_UNARY(id, ...) \
  Expression id(const Expression& x) { return apply(UnaryFunction::id, x); }
#include "einsum/expr/functions.def"

Expression uniform(const Expression& seed) {
  return made(build::random(RandomFunction::uniform, formula_of(seed)), {seed});
}
Expression normal(const Expression& seed) {
  return made(build::random(RandomFunction::normal, formula_of(seed)), {seed});
}
Expression cast(DType dtype, const Expression& x) {
  return made(build::Formula(build::Cast{inside(dtype), is_complex(dtype)}, {formula_of(x)}), {x});
}

Expression complex(const Expression& re, const Expression& im) {
  const build::ComplexCall call{ComplexFunction::complex};
  return made(build::Formula(call, {formula_of(re), formula_of(im)}), {re, im});
}
Expression conj(const Expression& z) { return of_complex(ComplexFunction::conj, z); }
Expression real(const Expression& z) { return of_complex(ComplexFunction::real, z); }
Expression imag(const Expression& z) { return of_complex(ComplexFunction::imag, z); }

Expression maximum(const Expression& a, const Expression& b) { return apply(BinaryFunction::maximum, a, b); }
Expression minimum(const Expression& a, const Expression& b) { return apply(BinaryFunction::minimum, a, b); }
Expression where(const Expression& condition, const Expression& a, const Expression& b) {
  return made(build::where(formula_of(condition), formula_of(a), formula_of(b)), {condition, a, b});
}
Expression pad(const Expression& element, const Expression& value) {
  const auto* const read = std::get_if<build::Access>(&formula_of(element).op());
  const std::optional<double> number = number_of(formula_of(value));
  if (read == nullptr || !number)
    throw UserError("pad takes an element of a variable and a number, as in pad(x(y + dy), 0)");
  build::Access padded = *read;
  padded.pad = *number;
  return made(build::Formula(std::move(padded), formula_of(element).arguments()), {element});
}

#define EINREL_REDUCER(id, ...) \
  Expression id(const Labels& over, const Expression& x) { return reduce(Reducer::id, over, x); }
#include "einsum/expr/functions.def"

Expression inverse(const Labels& matrix, const Expression& x) { return call({OpaqueFunction::inverse, 0}, matrix, x); }
Expression qr_q(const Labels& matrix, const Expression& x) { return call({OpaqueFunction::qr, 0}, matrix, x); }
Expression qr_r(const Labels& matrix, const Expression& x) { return call({OpaqueFunction::qr, 1}, matrix, x); }

Expression softmax(const Labels& over, const Expression& x) { return call("softmax", over, {x}); }
Expression logsoftmax(const Labels& over, const Expression& x) { return call("logsoftmax", over, {x}); }
Expression norm(const Labels& over, const Expression& x) { return call("norm", over, {x}); }
Expression variance(const Labels& over, const Expression& x) { return call("variance", over, {x}); }
Expression layernorm(const Labels& over, const Expression& x, const Expression& eps) {
  return call("layernorm", over, {x, eps});
}
Expression rmsnorm(const Labels& over, const Expression& x, const Expression& eps) {
  return call("rmsnorm", over, {x, eps});
}

}  // namespace functions

std::vector<NamedFunction> named_functions() {
  return {
#define EINREL_SIGN(...)
#define EINREL_UNARY(id, ...) {#id, id},
#include "einsum/expr/functions.def"
  };
}

std::vector<NamedReduction> named_reductions() {
  return {
#define EINREL_REDUCER(id, ...) {#id, id},
#include "einsum/expr/functions.def"
  };
}

}  // namespace einrel::api
