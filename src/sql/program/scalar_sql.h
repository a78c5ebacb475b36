#pragma once

#include <string>
#include <vector>

#include "einsum/graph/ein_graph.h"
#include "sql/dialect.h"

namespace einrel::sql {

/// Why plain SQL cannot say a vertex: thrown where it is found, told with the vertex's name.
struct NotInSql {
  std::string reason;
};

/// The value of an operand, in SQL.
struct OperandSql {
  std::string text;
  bool has_type = true;  ///< that of the operand in the language (typed_sql); else any type of number
};
/// What an expression stands on.
struct ScalarSources {
  std::vector<OperandSql> operands;
  std::vector<std::string> labels;
  const ScalarBindings& scalars;
};

/// A scalar expression as SQL over numbers: floats are doubles, bools 0 and 1. Throws NotInSql for what no dialect has
/// (erf, random numbers, checked indices, narrow floats).
std::string to_sql(const ScalarExpr& expr, const ScalarSources& sources, Dialect dialect);

/// A number of any type as what SQL computes with for `type`: a double, or a whole number.
std::string typed_sql(DType type, const std::string& number, Dialect dialect);
/// The exponential of a double. Where it leaves the range of doubles it is 0 or infinite, also in PostgreSQL, whose own
/// would end the statement.
std::string exp_sql(const std::string& x, Dialect dialect);
/// A number of that type.
std::string number_sql(DType type, double value, Dialect dialect);
/// 0 or 1: whether a number is anything but 0.
std::string truth_sql(const std::string& number, Dialect dialect);
/// A whole number of 64 bits as i32 has it.
std::string wrapped_to_i32(const std::string& whole);

}  // namespace einrel::sql
