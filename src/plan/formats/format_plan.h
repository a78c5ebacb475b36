#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/formats/format_cost.h"

namespace einrel {

/// A tensor brought to another format for a vertex that reads it.
struct Transformation {
  std::size_t tensor = 0;
  TensorFormat from;
  TensorFormat to;
  FormatCost cost;
};

/// A tensor's format, and what computing it costs.
struct VertexFormat {
  TensorFormat format;
  FormatCost cost;                              ///< of an input: of gathering it
  std::vector<Transformation> transformations;  ///< of what it reads; of a state, of its next value
};

/// The next best format of a tensor while all others keep theirs.
struct OtherFormat {
  TensorFormat format;
  double more_seconds = 0;
};

/// An annotated graph ("Automatic Matrix Format Exploration", chapter 5): how every vertex is computed, and with it the
/// formats of all tensors.
struct FormatPlan {
  GraphCuts cuts;
  std::vector<VertexFormat> vertices;
  FormatCost cost;  ///< of all vertices and transformations
  double seconds = 0;
  /// Proven: no other choice of formats costs less. Not where too many tensors depend on each other, or a vertex has
  /// so many labels that not all ways to cut them were looked at.
  bool is_least = false;
  std::vector<std::optional<OtherFormat>> others;  ///< per tensor; of plans that were chosen
};

/// The states that get another value in each step: vertices, and those of their next values.
std::vector<std::pair<std::size_t, std::size_t>> states_that_change(const EinGraph& graph);

/// What a graph costs that is cut in this way; of one with states, a step.
FormatPlan costs_of_formats(const EinGraph& graph, const GraphCuts& cuts, const FormatWeights& weights);

/// What formats are asked for.
struct FormatRequest {
  std::map<std::string, Format> given;  ///< by tensor; the others are chosen
  FormatWeights weights = {};
  std::size_t most_entries = std::size_t{1} << 17U;  ///< of a table, four matrices' formats, see elimination.h
};

/// The formats that cost least: the dynamic programs of chapters 6 and 7 of the paper, where the frontier's classes are
/// those that eliminating one variable after the other makes. Exact while no table has more than `most_entries`;
/// beyond that one tensor's format after the other is fixed, and then each changed as long as that gains anything. What
/// two vertices need in the same format is transformed twice. Throws UserError for a tensor that no format can hold,
/// and as check_tensors does.
FormatPlan plan_formats(const EinGraph& graph, const FormatRequest& request);

}  // namespace einrel
