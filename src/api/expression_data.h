#pragma once

#include <einrel/expression.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "einsum/front/build/formula.h"

namespace einrel::api {

/// One statement of a program, and those that it reads.
struct Variable::Statement {
  std::string name;
  std::variant<build::Statement, build::Equation, std::monostate> what;  ///< nothing where one that it reads defines it
  Labels labels;
  std::vector<std::shared_ptr<Statement>> reads;

  Statement(std::string own_name, decltype(what) own_what) : name(std::move(own_name)), what(std::move(own_what)) {}
  /// Loops where chains of statements would go down one call each.
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
};

/// A formula, and what it needs.
struct Expression::Data {
  build::Formula formula;
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

/// The program that computes these, in these steps.
build::Program program_of(const std::vector<Variable>& outputs, const Steps& steps);

}  // namespace einrel::api
