#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "plan/formats/format_plan.h"

/// What plan_formats searches; nobody else needs it.
namespace einrel::formats {

/// The ways to compute one vertex, and the formats that they give.
struct Choices {
  std::vector<Implementation> ways;
  std::vector<double> seconds;        ///< per way, operands in the formats that it reads
  std::vector<TensorFormat> formats;  ///< that the ways give, each once
  std::vector<std::size_t> result;    ///< per way the position of its format
};

/// What a vertex needs of one tensor: a need is all that one of its ways reads of it. A state needs its next value in
/// its own format.
struct Edge {
  std::size_t tensor = 0;
  std::size_t vertex = 0;
  std::vector<std::size_t> need;             ///< per way of the vertex
  std::vector<std::vector<double>> seconds;  ///< per need and format of the tensor: of transforming it
  double of(std::size_t format, std::size_t way) const { return seconds[need[way]][format]; }
};

/// A graph whose vertices each have several ways to be computed. Per vertex the position of its way is a choice.
class Space {
 public:
  using Choice = std::vector<std::size_t>;

  /// Throws as plan_formats does. `graph` must outlive it.
  Space(const EinGraph& graph, const FormatRequest& request);

  /// Leaves out ways in whose place another one makes every plan cheaper: whatever formats its operands lie in and
  /// others need. As often as that leaves fewer for neighbours.
  void drop_dominated();

  /// The least sum, by eliminating variables: the format of each tensor, and the way of each vertex that reads some.
  Choice least(std::size_t most_entries, bool& is_least) const;

  /// Changes one vertex after the other to what is cheapest beside the others, as long as that gains anything.
  void improve(Choice& choice) const;

  /// The cheapest way to a different format beside the others, and what it costs more.
  std::optional<OtherFormat> other_format(const Choice& choice, std::size_t vertex) const;

  GraphCuts cuts(const Choice& choice) const;
  /// The inverse.
  Choice choice_of(const GraphCuts& cuts) const;
  bool has_all_ways() const { return has_all_ways_; }

 private:
  void make_edges();
  /// `needs`: per way of the vertex the formats in which it reads the tensor.
  void add_edge(std::size_t tensor, std::size_t vertex, const std::vector<std::vector<TensorFormat>>& needs);
  std::vector<std::size_t> undominated(std::size_t vertex) const;
  bool dominates(std::size_t vertex, std::size_t way, std::size_t other) const;
  /// Of one vertex in one way, with what brings its operands to it and its result to others.
  double seconds_beside(const Choice& choice, std::size_t vertex, std::size_t way) const;

  const EinGraph& graph_;
  FormatWeights weights_;
  TransformationCosts transformations_;
  std::vector<Choices> choices_;
  std::vector<Edge> edges_;
  std::vector<std::vector<std::size_t>> operands_;   ///< per vertex the edges that it reads
  std::vector<std::vector<std::size_t>> consumers_;  ///< per vertex the edges that read it
  bool has_all_ways_ = true;
};

}  // namespace einrel::formats
