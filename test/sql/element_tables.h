#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "einsum/check/check.h"
#include "sql/program/names.h"
#include "sql/program/run.h"
#include "sql/program/user_tables.h"
#include "tensor/tensor.h"

/// Tensors as tables that other programs would make, written and read without what the programs under test do.
namespace einrel::test {

/// Columns d0, d1, ... or `labels`, and value.
inline void make_element_table(sql::Database& database, const std::string& name, const Tensor& tensor,
                               const std::vector<std::string>& columns) {
  std::string names;
  for (const std::string& column : columns) names += sql::quoted_name(column) + ", ";
  database.execute(fmt::format("CREATE TABLE {} ({}\"value\")", sql::quoted_name(name), names));
  const std::vector<double> values = values_of(tensor);
  std::string rows;
  for (std::size_t at = 0; at < values.size(); ++at) {
    std::string keys;
    auto rest = static_cast<std::int64_t>(at);
    for (std::size_t d = tensor.rank(); d-- > 0;) {
      keys = fmt::format("{}, ", rest % tensor.shape()[d].value()) + keys;
      rest /= tensor.shape()[d].value();
    }
    const double value = values[at];
    std::string text =
        is_float(tensor.dtype()) ? fmt::format("{:.17e}", value) : fmt::format("{}", static_cast<std::int64_t>(value));
    if (std::isnan(value)) text = "NULL";
    if (std::isinf(value)) text = value > 0 ? "9e999" : "-9e999";
    rows += fmt::format("{}({}{})", rows.empty() ? "" : ", ", keys, text);
  }
  if (!rows.empty()) database.execute(fmt::format("INSERT INTO {} VALUES {}", sql::quoted_name(name), rows));
}

}  // namespace einrel::test
