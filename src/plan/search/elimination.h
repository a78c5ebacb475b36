#pragma once

#include <cstddef>
#include <cstdint>
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
  double cost = 0;       ///< the sum of all tables
  bool is_least = true;  ///< proven; not where a table would have had too many entries
};

/// An order in which to eliminate variables, of which those of one scope depend on each other: always the one that
/// makes fewest new pairs of neighbours (min-fill).
std::vector<std::size_t> min_fill_order(std::size_t variables, const std::vector<std::vector<std::size_t>>& scopes);

/// Entries of the largest table that elimination in this order makes. O(variables * neighbours^2).
double largest_table(const std::vector<std::size_t>& domains, const std::vector<std::vector<std::size_t>>& scopes,
                     const std::vector<std::size_t>& order);

/// The values for which the sum of all tables is least; variable v takes those below domains[v]. Of equals, lower
/// values are taken. By eliminating one variable after the other: exact, with time and memory exponential only in the
/// width of the order. Where a table would have more entries than `most_entries`, one of its variables is given the
/// value that is best by itself, and the result may not be least.
Assignment least_assignment(const std::vector<std::size_t>& domains, std::vector<CostTable> tables,
                            const std::vector<std::size_t>& order, std::size_t most_entries = std::size_t{1} << 20U);

}  // namespace einrel
