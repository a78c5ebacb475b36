#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "plan/plan.h"

namespace einrel {

/// Whether a vertex has so many labels (dimensions, of an input) that searches look at some of the ways to cut it only.
bool has_many_labels(const Vertex& vertex);

/// Ways to cut the vertices of a graph that have many labels, chosen for the whole graph together. A label of a vertex
/// and the dimensions of what it reads and makes that the label walks through are one line; a line lives from the first
/// vertex that passes it on from a largest operand to its result to the last. What is cut along lines that live long
/// need not be cut anew from vertex to vertex. For each vertex there are cuts along such lines, and the cuts of a few
/// walks over the graph that change a cut only where a line of it ends: neighbours then find the same cut.
class SampledCuts {
 public:
  /// Pairs of cuts of neighbours, times labels, that a search compares in well below a second.
  static constexpr double usual_comparisons = 5e7;

  /// For each of these numbers of sites, the first the most important one; where a vertex does not allow it, for the
  /// largest below that it does allow. O(labels of all vertices * log(labels)).
  SampledCuts(const EinGraph& graph, std::vector<std::int64_t> numbers, double comparisons = usual_comparisons);

  /// So many walks make a cut of each vertex for each number.
  static constexpr std::size_t walks_each = 4;

  /// About `most` for all numbers together, and those of walks, in no particular order. O(result * labels).
  std::vector<PartitionVector> of(std::size_t v, std::size_t most) const;

  /// How many ways to cut a vertex may be looked at, so that a search makes so many comparisons, whatever the number of
  /// labels and vertices, as long as a few ways are left.
  std::size_t most_of(std::size_t v) const;

 private:
  /// A line, and the vertices that pass it on.
  struct Line {
    std::size_t first = 0;
    std::size_t last = 0;
    bool is_passed = false;
  };
  /// Lines that are cut, and into how many parts.
  using CutLines = std::vector<std::pair<std::size_t, std::int64_t>>;
  enum class Keep { what_is_left, nothing };
  enum class Direction { forward, backward };

  void find_lines();
  void find_lives();
  bool is_passed_on(std::size_t v, std::size_t label) const;
  std::vector<std::size_t> by_rank(std::size_t v, Direction direction) const;
  std::vector<std::size_t> pool_order(std::size_t v) const;
  void add_sampled(std::size_t v, std::int64_t number, std::size_t most, std::vector<PartitionVector>& found) const;
  std::int64_t value_of(std::size_t v, const PartitionVector& grid) const;
  void walk(std::int64_t number, Direction direction, Keep keep);
  bool fill(std::size_t v, std::int64_t number, const std::vector<std::size_t>& order, PartitionVector& grid) const;
  CutLines inherited(std::size_t v, Direction direction, const std::vector<PartitionVector>& grids) const;
  std::size_t neighbour(std::size_t v, Direction direction) const;

  const EinGraph& graph_;
  std::vector<std::int64_t> numbers_;
  double comparisons_;
  std::vector<PartitionVector> most_;                ///< parts that labels allow
  std::vector<std::vector<std::size_t>> line_of_;    ///< per vertex and label
  std::vector<std::vector<bool>> is_passed_on_;      ///< per vertex and label
  std::vector<std::vector<std::size_t>> consumers_;  ///< per vertex
  std::vector<Line> lines_;
  std::vector<std::vector<PartitionVector>> of_walks_;  ///< per vertex
};

}  // namespace einrel
