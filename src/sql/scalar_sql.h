#pragma once

#include <string>
#include <vector>

#include "einsum/ein_graph.h"
#include "sql/dialect.h"

namespace einrel::sql {

/// Why plain SQL cannot say a vertex: thrown where it is found, told with the vertex's name.
struct NotInSql {
  std::string reason;
};

/// What an expression stands on.
struct ScalarSources {
  std::vector<std::string> operands;  ///< the value of each, in SQL
  std::vector<std::string> labels;
  const ScalarBindings& scalars;
};

/// A scalar expression as SQL over numbers: floats are doubles, bools 0 and 1. Throws NotInSql for what no dialect has
/// (erf, random numbers, checked indices, narrow floats).
std::string to_sql(const ScalarExpr& expr, const ScalarSources& sources, Dialect dialect);

/// A number of that type.
std::string number_sql(DType type, double value, Dialect dialect);
/// 0 or 1: whether a number is anything but 0.
std::string truth_sql(const std::string& number, Dialect dialect);
/// A whole number of 64 bits as i32 has it.
std::string wrapped_to_i32(const std::string& whole);

}  // namespace einrel::sql
