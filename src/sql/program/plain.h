#pragma once

#include <map>
#include <string>
#include <vector>

#include "einsum/graph/ein_graph.h"
#include "sql/dialect.h"
#include "sql/program/names.h"
#include "sql/program/script.h"

namespace einrel::sql {

/// A tensor as a table of its elements.
struct ElementTable {
  std::string name;                  ///< quoted
  std::vector<std::string> columns;  ///< of its dimensions, of which it has some if it is sparse; `value` is another
  bool is_sparse = false;            ///< where it has no row, the tensor is zero
  bool has_types = true;             ///< of values, as typed_sql gives them; else `value` is any type of number
};
/// Where inputs stand, and where outputs go.
struct ElementTables {
  std::map<std::string, ElementTable> inputs;
  std::map<std::string, std::string> outputs;  ///< quoted
};

/// The program in SQL without functions of Einrel, every tensor in the format `element`: a table of a column for each
/// dimension and `value`. Inputs are tables with the names of the tensors and of their labels (`labels`), whose values
/// are of any type of number; outputs become such, with a row for each element. What is in between has no rows where
/// sparse inputs make it zero. Values are doubles (also those of f32) and whole numbers. Throws UserError that names
/// the tensor for what SQL cannot say: an inverse, random numbers, erf, checked indices, narrow floats, powers of whole
/// numbers.
Script plain_script(const EinGraph& graph, const std::map<std::string, std::vector<std::string>>& labels,
                    const ScalarBindings& scalars, const ScriptTarget& target);
/// The same with other tables; what it makes besides gets fresh names and is temporary.
Script plain_script(const EinGraph& graph, const ElementTables& given, const ScalarBindings& scalars, TableNames& names,
                    Dialect dialect);

}  // namespace einrel::sql
