#include "plan/formats/format_cost.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "einsum/expr/functions.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/plan.h"
#include "tra/repartition.h"

namespace einrel {
namespace {

bool is_reduced_in_parts(const Vertex& vertex, const std::vector<std::int64_t>& parts) {
  const std::vector<std::size_t> reduced = reduced_labels(vertex);
  return std::any_of(reduced.begin(), reduced.end(), [&](std::size_t label) { return parts[label] > 1; });
}

/// Bytes of a chunk of each relation that a vertex joins. X[i,j] * X[j,i] joins two relations where i or j is cut.
std::vector<double> joined_bytes(const EinGraph& graph, const Vertex& vertex, const std::vector<std::int64_t>& parts) {
  std::vector<std::pair<std::size_t, std::vector<std::optional<std::size_t>>>> relations;
  std::vector<double> bytes;
  for (const std::size_t operand : operands_read(vertex)) {
    std::vector<std::optional<std::size_t>> labels = operand_labels(vertex, operand);
    for (std::optional<std::size_t>& label : labels) label = label && parts[*label] > 1 ? label : std::nullopt;
    std::pair relation{vertex.inputs[operand].index, std::move(labels)};
    if (std::find(relations.begin(), relations.end(), relation) != relations.end()) continue;
    relations.push_back(std::move(relation));
    const Vertex& tensor = graph[vertex.inputs[operand]];
    bytes.push_back(bytes_of(tensor) / tuples_of(operand_cuts(vertex, operand, tensor.bound, parts)));
  }
  return bytes;
}

/// How many calls one has that does most, and how many chunks of the result.
struct Share {
  double calls = 0;
  double results = 0;
};

/// The bytes of a body's values at all labels.
double value_bytes(const EinSum& einsum) {
  return std::accumulate(
      einsum.labels.begin(), einsum.labels.end(), static_cast<double>(size_of(einsum.body.type())),
      [](double bytes, const Label& label) { return bytes * static_cast<double>(label.extent.value()); });
}

bool is_position(const EinSum& einsum) { return finds_position(einsum.reducer); }

/// What it costs to fold partial results, beside that kernels give them: the join's tuples are sorted by the result's
/// key, if it has one, and handed on; what is folded is finished where it is no result yet, as the sum of a mean.
FormatCost folding(const Vertex& vertex, double read_bytes, double results, const Share& own) {
  const EinSum& einsum = *einsum_of(vertex);
  const DType partial = is_position(einsum) ? vertex.dtype : reduced_type(*einsum.reducer, einsum.body.type());
  const double elements = static_cast<double>(element_count(vertex.bound)) / results;
  const double partial_bytes = elements * static_cast<double>(size_of(partial));
  const double result_bytes = elements * static_cast<double>(size_of(vertex.dtype));
  const double sorted_bytes = vertex.bound.empty() ? 0 : read_bytes;
  FormatCost cost{
      .compute = elements * own.calls,
      .tuples = own.calls,
      .intermediate = (sorted_bytes + 2 * partial_bytes - result_bytes) * own.calls + partial_bytes * own.results};
  if (*einsum.reducer == Reducer::mean || partial != vertex.dtype) {
    cost.compute += *einsum.reducer == Reducer::mean ? elements * own.results : 0;
    cost.tuples += own.results;
    cost.intermediate += (partial_bytes + result_bytes) * own.results;
  }
  return cost;
}

/// Where positions of extremes are folded, extremes are before: two reductions, of a table where values are computed.
FormatCost of_position(const EinSum& einsum, const FormatCost& reduction, double read_bytes, double calls) {
  FormatCost cost = reduction;
  for (double* const component : {&cost.compute, &cost.tuples, &cost.read, &cost.intermediate}) *component *= 2;
  if (einsum.body.steps.size() == 1) return cost;
  const double bytes = value_bytes(einsum);
  return cost += {.tuples = calls, .read = read_bytes * calls, .intermediate = bytes, .statements = 1, .stored = bytes};
}

}  // namespace

FormatCost& FormatCost::operator+=(const FormatCost& other) {
  for (const FormatComponent& component : format_components) this->*component.count += other.*component.count;
  return *this;
}

double seconds_of(const FormatCost& cost, const FormatWeights& weights) {
  double seconds = 0;
  for (const FormatComponent& component : format_components)
    seconds += cost.*component.count * weights.*component.weight;
  return seconds;
}

FormatCost cost_of(const EinGraph& graph, const Vertex& vertex, const Implementation& way,
                   const FormatWeights& weights) {
  const double calls = std::accumulate(way.parts.begin(), way.parts.end(), 1.0, [](double product, std::int64_t parts) {
    return product * static_cast<double>(parts);
  });
  const double results = tuples_of(way.result);
  const double result_bytes = bytes_of(vertex) / results;
  const std::vector<double> joined = joined_bytes(graph, vertex, way.parts);
  const double read_bytes = std::accumulate(joined.begin(), joined.end(), 0.0);
  const bool is_shared = weights.workers > 1 && is_worth_sharing(vertex, way.parts, weights.most_alone);
  double own_results = results;
  if (is_shared) {
    const auto parts = static_cast<double>(sharing_parts(static_cast<std::int64_t>(weights.workers)));
    own_results = std::min(results, std::ceil(results / parts) * std::ceil(parts / weights.workers));
  }
  const Share own{own_results * calls / results, own_results};
  FormatCost cost{.compute = flops(vertex) / calls * own.calls,
                  .network = is_shared ? bytes_of(vertex) : 0,
                  .tuples = own.calls,
                  .read = read_bytes * own.calls,
                  .intermediate = result_bytes * own.calls,
                  .statements = is_shared ? shared_statements : 1,
                  .stored = bytes_of(vertex)};
  const EinSum* const einsum = einsum_of(vertex);
  if (einsum == nullptr) return cost;
  if (is_reduced_in_parts(vertex, way.parts)) {
    cost += folding(vertex, read_bytes, results, own);
    if (is_position(*einsum)) cost = of_position(*einsum, cost, read_bytes, calls);
  }
  return cost;
}

FormatCost gathering_cost(const Vertex& input, const TensorFormat& format) {
  const double bytes = bytes_of(input);
  return {.tuples = tuples_of(format), .intermediate = bytes, .statements = 1, .stored = bytes};
}

FormatCost TransformationCosts::of(const Vertex& tensor, const TensorFormat& from, const TensorFormat& to) {
  if (from == to) return {};
  double pieces = 1;
  auto read = static_cast<double>(size_of(tensor.dtype));
  bool is_same = true;
  for (std::size_t d = 0; d < from.size(); ++d) {
    const auto [known, is_new] = pieces_.try_emplace({tensor.bound[d].value(), from[d], to[d]});
    if (is_new) known->second = count_of_pieces(tensor.bound[d], from[d], to[d]);
    pieces *= static_cast<double>(known->second.pieces);
    read *= static_cast<double>(known->second.extents);
    is_same = is_same && known->second.pieces == from[d].parts && from[d].parts == to[d].parts;
  }
  if (is_same) return {};
  const double bytes = bytes_of(tensor);
  const bool is_cut = pieces > tuples_of(from);
  const bool is_put_together = pieces > tuples_of(to);
  const double times = is_put_together ? (is_cut ? 3 : 2) : 1;  // given, sorted or handed on, given again
  return {.read = read,
          .intermediate = times * bytes,
          .statements = 1,
          .pieces = pieces + (is_put_together ? tuples_of(to) : 0),
          .stored = bytes};
}

}  // namespace einrel
