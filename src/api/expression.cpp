#include <einrel/error.h>
#include <einrel/expression.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "api/border.h"
#include "api/expression_data.h"
#include "base/source.h"
#include "base/text.h"
#include "einsum/text/lexer.h"

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

std::string joined(const Labels& labels, std::string_view separator) {
  std::string text;
  for (const Label& label : labels) text += fmt::format("{}{}", text.empty() ? "" : separator, label.name());
  return text;
}

/// In parentheses where it binds more loosely than its place asks for.
std::string in_place(const Expression& part, Binding place) {
  const Data& data = ExpressionAccess::data(part);
  return data.binding < place ? fmt::format("({})", data.text) : data.text;
}

Expression infix(const Expression& a, std::string_view sign, const Expression& b, Binding binding, Binding left,
                 Binding right) {
  Data data{fmt::format("{} {} {}", in_place(a, left), sign, in_place(b, right)), binding, {}, {}};
  add_needs(data, ExpressionAccess::data(a));
  add_needs(data, ExpressionAccess::data(b));
  return ExpressionAccess::expression(std::move(data));
}

Expression comparison(const Expression& a, std::string_view sign, const Expression& b) {
  return infix(a, sign, b, Binding::comparison, Binding::sum, Binding::sum);
}

/// NAME(arguments...), or NAME[labels](arguments...).
Expression call(std::string_view name, std::initializer_list<Expression> arguments, const Labels* labels = nullptr) {
  Data data;
  std::string text;
  for (const Expression& argument : arguments) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ExpressionAccess::data(argument).text);
    add_needs(data, ExpressionAccess::data(argument));
  }
  data.text = labels == nullptr ? fmt::format("{}({})", name, text)
                                : fmt::format("{}[{}]({})", name, joined(*labels, ","), text);
  if (labels != nullptr) add_labels(data.labels, *labels);
  return ExpressionAccess::expression(std::move(data));
}

Expression reduction(std::string_view name, const Labels& over, const Expression& x) {
  const Data& body = ExpressionAccess::data(x);
  const bool is_product = body.binding == Binding::product || body.binding >= Binding::power;
  Data data{fmt::format("{}[{}] {}", name, joined(over, ","), is_product ? body.text : fmt::format("({})", body.text)),
            Binding::reduction,
            over,
            {}};
  add_needs(data, body);
  return ExpressionAccess::expression(std::move(data));
}

/// As the language writes it; with a point or an exponent, so that it stays no whole number.
std::string number_text(double value) {
  if (std::isnan(value)) throw UserError("NaN is no number of the language: compute it, as in 0.0 / 0.0");
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

Expression number(std::string text) {
  const Binding binding = text.starts_with('-') ? Binding::sign : Binding::primary;
  return ExpressionAccess::expression({std::move(text), binding, {}, {}});
}

std::string group_text(const LabelGroup& group) {
  if (group.labels().empty()) return "1";
  const std::string text = joined(group.labels(), " ");
  return group.labels().size() == 1 ? text : fmt::format("({})", text);
}

std::string groups_text(const std::vector<LabelGroup>& groups) {
  std::string text;
  for (const LabelGroup& group : groups) text += fmt::format("{}{}", text.empty() ? "" : ",", group_text(group));
  return text;
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
Expression::Expression(double value) : Expression(number(number_text(value))) {}
Expression::Expression(const Label& label)
    : Expression(ExpressionAccess::expression({label.name(), Binding::primary, {label}, {}})) {}
Expression Expression::of_integer(std::int64_t value) { return number(std::to_string(value)); }
void Expression::too_large() { throw UserError("a whole number in a formula lies between -2^63 and 2^63-1"); }

Variable::Variable(std::shared_ptr<Statement> statement) : statement_(std::move(statement)) {}
const std::string& Variable::name() const { return statement_->name; }

Expression Variable::element(const std::vector<Expression>& indices) const {
  Data data;
  for (const Expression& index : indices) {
    data.text += fmt::format("{}{}", data.text.empty() ? "" : ",", ExpressionAccess::data(index).text);
    add_needs(data, ExpressionAccess::data(index));
  }
  data.text = fmt::format("{}[{}]", name(), data.text);
  data.reads.push_back(statement_);
  return ExpressionAccess::expression(std::move(data));
}

Variable input(const std::string& name, const Labels& labels, DType dtype) {
  at_border([&] { check_name(name); });
  auto statement =
      std::make_shared<Statement>(name, fmt::format("input {}[{}] : {}", name, joined(labels, ","), name_of(dtype)));
  statement->labels = labels;
  return ExpressionAccess::variable(std::move(statement));
}

Expression scalar(const std::string& name, std::optional<double> value) {
  at_border([&] { check_name(name); });
  std::string text = fmt::format("scalar {}", name);
  if (value) text += fmt::format(" = {}", number_text(*value));
  return ExpressionAccess::expression(
      {name, Binding::primary, {}, {std::make_shared<Statement>(name, std::move(text))}});
}

Variable define(const std::string& name, const Labels& labels, const Expression& value) {
  at_border([&] { check_name(name); });
  const Data& data = ExpressionAccess::data(value);
  auto statement = std::make_shared<Statement>(name, fmt::format("{}[{}] = {}", name, joined(labels, ","), data.text));
  statement->labels = labels;
  add_labels(statement->labels, data.labels);
  statement->reads = data.reads;
  return ExpressionAccess::variable(std::move(statement));
}

Variable view(const std::string& name, const std::vector<LabelGroup>& to, const Variable& source,
              const std::vector<LabelGroup>& from) {
  at_border([&] { check_name(name); });
  auto statement = std::make_shared<Statement>(
      name, fmt::format("{}[{}] = view {}[{}]", name, groups_text(to), source.name(), groups_text(from)));
  for (const auto* side : {&to, &from}) {
    for (const LabelGroup& group : *side) add_labels(statement->labels, group.labels());
  }
  statement->reads = {ExpressionAccess::statement(source)};
  return ExpressionAccess::variable(std::move(statement));
}

std::string program_text(const std::vector<Variable>& outputs) {
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
  for (const Variable& output : outputs) {
    enter(ExpressionAccess::statement(output).get());
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
  std::string dims;
  std::set<std::pair<std::string, std::int64_t>> declared;
  for (const Statement* statement : ordered) {
    for (const Label& label : statement->labels) {
      if (label.extent() && declared.insert({label.name(), *label.extent()}).second)
        dims += fmt::format(" {}={}", label.name(), *label.extent());
    }
  }
  std::string text = dims.empty() ? "" : fmt::format("dims{}\n", dims);
  for (const Statement* statement : ordered) text += statement->text + "\n";
  std::string names;
  for (const Variable& output : outputs) names += fmt::format("{}{}", names.empty() ? "" : ", ", output.name());
  if (names.empty()) throw UserError("a program needs a variable to compute: none is given");
  return fmt::format("{}output {}\n", text, names);
}

Expression operator+(const Expression& a, const Expression& b) {
  return infix(a, "+", b, Binding::sum, Binding::sum, Binding::product);
}
Expression operator-(const Expression& a, const Expression& b) {
  return infix(a, "-", b, Binding::sum, Binding::sum, Binding::product);
}
Expression operator*(const Expression& a, const Expression& b) {
  return infix(a, "*", b, Binding::product, Binding::product, Binding::power);
}
Expression operator/(const Expression& a, const Expression& b) {
  return infix(a, "/", b, Binding::product, Binding::product, Binding::power);
}
Expression pow(const Expression& a, const Expression& b) {
  return infix(a, "**", b, Binding::power, Binding::primary, Binding::primary);
}
Expression operator-(const Expression& a) {
  Data data{"-" + in_place(a, Binding::power), Binding::sign, {}, {}};
  add_needs(data, ExpressionAccess::data(a));
  return ExpressionAccess::expression(std::move(data));
}

Expression operator<(const Expression& a, const Expression& b) { return comparison(a, "<", b); }
Expression operator<=(const Expression& a, const Expression& b) { return comparison(a, "<=", b); }
Expression operator>(const Expression& a, const Expression& b) { return comparison(a, ">", b); }
Expression operator>=(const Expression& a, const Expression& b) { return comparison(a, ">=", b); }
Expression operator==(const Expression& a, const Expression& b) { return comparison(a, "==", b); }
Expression operator!=(const Expression& a, const Expression& b) { return comparison(a, "!=", b); }

Expression abs(const Expression& x) { return call("abs", {x}); }
Expression exp(const Expression& x) { return call("exp", {x}); }
Expression log(const Expression& x) { return call("log", {x}); }
Expression log1p(const Expression& x) { return call("log1p", {x}); }
Expression expm1(const Expression& x) { return call("expm1", {x}); }
Expression sqrt(const Expression& x) { return call("sqrt", {x}); }
Expression rsqrt(const Expression& x) { return call("rsqrt", {x}); }
Expression sq(const Expression& x) { return call("sq", {x}); }
Expression tanh(const Expression& x) { return call("tanh", {x}); }
Expression sigmoid(const Expression& x) { return call("sigmoid", {x}); }
Expression relu(const Expression& x) { return call("relu", {x}); }
Expression step(const Expression& x) { return call("step", {x}); }
Expression gelu(const Expression& x) { return call("gelu", {x}); }
Expression silu(const Expression& x) { return call("silu", {x}); }
Expression erf(const Expression& x) { return call("erf", {x}); }
Expression sin(const Expression& x) { return call("sin", {x}); }
Expression cos(const Expression& x) { return call("cos", {x}); }
Expression floor(const Expression& x) { return call("floor", {x}); }
Expression cast(DType dtype, const Expression& x) { return call(name_of(dtype), {x}); }

Expression maximum(const Expression& a, const Expression& b) { return call("max", {a, b}); }
Expression minimum(const Expression& a, const Expression& b) { return call("min", {a, b}); }
Expression where(const Expression& condition, const Expression& a, const Expression& b) {
  return call("where", {condition, a, b});
}
Expression pad(const Expression& element, const Expression& value) { return call("pad", {element, value}); }

Expression sum(const Labels& over, const Expression& x) { return reduction("sum", over, x); }
Expression prod(const Labels& over, const Expression& x) { return reduction("prod", over, x); }
Expression max(const Labels& over, const Expression& x) { return reduction("max", over, x); }
Expression min(const Labels& over, const Expression& x) { return reduction("min", over, x); }
Expression mean(const Labels& over, const Expression& x) { return reduction("mean", over, x); }
Expression any(const Labels& over, const Expression& x) { return reduction("any", over, x); }
Expression all(const Labels& over, const Expression& x) { return reduction("all", over, x); }
Expression argmax(const Labels& over, const Expression& x) { return reduction("argmax", over, x); }
Expression argmin(const Labels& over, const Expression& x) { return reduction("argmin", over, x); }
Expression logsumexp(const Labels& over, const Expression& x) { return reduction("logsumexp", over, x); }

Expression softmax(const Labels& over, const Expression& x) { return call("softmax", {x}, &over); }
Expression logsoftmax(const Labels& over, const Expression& x) { return call("logsoftmax", {x}, &over); }
Expression norm(const Labels& over, const Expression& x) { return call("norm", {x}, &over); }
Expression variance(const Labels& over, const Expression& x) { return call("variance", {x}, &over); }
Expression layernorm(const Labels& over, const Expression& x, const Expression& eps) {
  return call("layernorm", {x, eps}, &over);
}
Expression rmsnorm(const Labels& over, const Expression& x, const Expression& eps) {
  return call("rmsnorm", {x, eps}, &over);
}

}  // namespace einrel::api
