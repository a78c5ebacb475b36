#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace einrel {

/// Which labels (by position) a factor or an intermediate carries.
using LabelSet = std::vector<bool>;

/// A sum of products as numbers: extents of the labels, which of them the result keeps, the labels of each factor.
struct Contraction {
  std::vector<double> extents;
  LabelSet output;
  std::vector<LabelSet> factors;
};

/// In which order the factors are multiplied. Nodes 0..n-1 are the factors; node n+i is the product of steps[i], in
/// which every label that nothing outside it needs is summed. A factor listed in `reduced_first` is summed over its
/// own labels before it is multiplied, since that is cheaper.
struct ContractionTree {
  std::vector<std::pair<std::size_t, std::size_t>> steps;
  std::vector<bool> reduced_first;
  double flops = 0;  ///< one per multiplication or addition of two numbers
  bool optimal = false;
};

/// The cheapest order in flops by dynamic programming over subsets up to 12 factors, O(3^n * labels); beyond that the
/// greedy one that at each step makes the result smallest against its two parts, among 64 partners for each: of 3,000
/// factors in a ring in milliseconds.
ContractionTree find_contraction_tree(const Contraction& contraction);

}  // namespace einrel
