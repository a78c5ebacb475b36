#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace einrel {

/// Variables of which each takes one of some values: what values cost alone, and what those of a few variables cost
/// together. Finds how little all can cost at least, and values that no cheap assignment has, without looking at
/// assignments: costs are moved between values and factors, which changes no sum, so that the sum of what each variable
/// and each factor costs at least becomes as large as it can (Kolmogorov, A new look at reweighted message passing,
/// 2015: his sequential passes, which find the least cost where factors make a tree).
class CostNetwork {
 public:
  /// What several variables cost together. Values of one class cost the same.
  struct Factor {
    std::vector<std::size_t> variables;                ///< ascending, two or more
    std::vector<std::vector<std::size_t>> classes;     ///< of each of them, by value
    std::vector<std::size_t> counts;                   ///< of each of them, how many classes there are
    std::shared_ptr<const std::vector<double>> costs;  ///< finite; row-major by classes
  };
  /// Per variable, what its values cost alone, finite.
  CostNetwork(std::vector<std::vector<double>> alone, std::vector<Factor> factors);

  /// What every assignment costs at least. O(values + costs of factors).
  double at_least() const;
  /// Moves costs once through all variables and back. O(values + variables of a factor * costs of factors).
  void pass();
  /// Makes values of a variable dearer, each by so much. O(values).
  void charge(std::size_t variable, const std::vector<double>& more);
  /// Values of all variables that seem cheap: one after the other the cheapest beside those before it, by what was
  /// moved. As long as half a pass.
  std::vector<std::size_t> likely() const;
  /// Leaves out values that no assignment has which costs less than this; how many. Where nothing is left of a
  /// variable, there is no such assignment. As long as a pass.
  std::size_t leave_out(double enough);
  /// The values of a variable that are left, ascending.
  const std::vector<std::size_t>& left(std::size_t variable) const { return left_[variable]; }

 private:
  /// A factor, and which of its variables.
  struct Place {
    std::size_t factor = 0;
    std::size_t at = 0;
  };
  std::vector<double> least_of_factor(Place place) const;
  void visit(std::size_t variable, const std::vector<Place>& from, const std::vector<Place>& to);

  std::vector<std::vector<double>> alone_;  ///< what is left at values
  std::vector<Factor> factors_;
  std::vector<std::vector<std::vector<double>>> moved_;  ///< per factor and variable, by value: what was moved to it
  std::vector<std::vector<Place>> after_others_;         ///< per variable, factors with variables before it
  std::vector<std::vector<Place>> before_others_;
  std::vector<std::vector<std::size_t>> left_;
};

}  // namespace einrel
