#pragma once

#include <einrel/expression.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace einrel::api {

/// How tightly a formula's outermost operation binds, loosest first (docs/language.md, "Expressions").
enum class Binding : std::uint8_t { comparison, sum, reduction, product, sign, power, primary };

/// One statement of a program, and those that it reads.
struct Variable::Statement {
  std::string name;
  std::string text;
  Labels labels;
  std::vector<std::shared_ptr<Statement>> reads;

  Statement(std::string own_name, std::string own_text) : name(std::move(own_name)), text(std::move(own_text)) {}
  /// Loops where chains of statements would go down one call each.
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
};

/// A formula as text, and what it needs.
struct Expression::Data {
  std::string text;
  Binding binding = Binding::primary;
  Labels labels;  ///< no two the same
  std::vector<std::shared_ptr<Variable::Statement>> reads;
};

struct ExpressionAccess {
  using Statement = Variable::Statement;
  using Data = Expression::Data;
  static const Data& data(const Expression& expression) { return *expression.data_; }
  static Expression expression(Data data) { return Expression(std::make_shared<const Data>(std::move(data))); }
  static const std::shared_ptr<Statement>& statement(const Variable& variable) { return variable.statement_; }
  static Variable variable(std::shared_ptr<Statement> statement) { return Variable(std::move(statement)); }
};

/// The text of the program that computes these.
std::string program_text(const std::vector<Variable>& outputs);

}  // namespace einrel::api
