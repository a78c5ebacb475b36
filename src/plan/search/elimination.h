#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace einrel {

/// Costs of every way to give some variables values: one for each combination, row-major in the variables' order.
struct CostTable {
  std::vector<std::size_t> variables;  ///< that differ
  std::vector<double> costs;           ///< infinity where a combination is forbidden
};

/// Values of all variables.
struct Assignment {
  std::vector<std::size_t> values;
  double cost = 0;  ///< the sum of all tables
  bool is_least = true;  ///< proven; not where a table would have had too many entries
};

/// The values for which the sum of all tables is least; variable v takes those below domains[v]. Of equals, lower values
/// are taken. By eliminating one variable after the other, that which makes fewest new neighbours first (min-fill):
/// exact, with time and memory exponential only in the width of that order. Where a table would have more entries than
/// `most_entries`, the variable with most neighbours is given the value that is best by itself, and the result may not
/// be least.
Assignment least_assignment(const std::vector<std::size_t>& domains, std::vector<CostTable> tables,
                            std::size_t most_entries = std::size_t{1} << 20U);

}  // namespace einrel
