#include "plan/formats/format_cost.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "einsum/vertex_facts.h"
#include "plan/plan.h"
#include "tra/repartition.h"

namespace einrel {
namespace {

bool is_reduced_in_parts(const Vertex& vertex, const std::vector<std::int64_t>& parts) {
  const std::vector<std::size_t> reduced = reduced_labels(vertex);
  return std::any_of(reduced.begin(), reduced.end(), [&](std::size_t label) { return parts[label] > 1; });
}

}  // namespace

FormatCost& FormatCost::operator+=(const FormatCost& other) {
  compute += other.compute;
  network += other.network;
  tuples += other.tuples;
  read += other.read;
  intermediate += other.intermediate;
  statements += other.statements;
  pieces += other.pieces;
  stored += other.stored;
  return *this;
}

double seconds_of(const FormatCost& cost, const FormatWeights& weights) {
  return cost.compute * weights.operation + cost.network * weights.network_byte + cost.tuples * weights.tuple +
         cost.read * weights.read_byte + cost.intermediate * weights.intermediate_byte +
         cost.statements * weights.statement + cost.pieces * weights.piece + cost.stored * weights.stored_byte;
}

FormatCost cost_of(const EinGraph& graph, const Vertex& vertex, const Implementation& way,
                   const FormatWeights& weights) {
  const double calls = std::accumulate(way.parts.begin(), way.parts.end(), 1.0, [](double product, std::int64_t parts) {
    return product * static_cast<double>(parts);
  });
  const double results = tuples_of(way.result);
  const double result_bytes = bytes_of(vertex) / results;
  double read_bytes = 0;
  for (const NeededFormat& need : way.reads)
    read_bytes += bytes_of(graph.vertices[need.tensor]) / tuples_of(need.format);
  const bool is_shared = weights.workers > 1 && is_worth_sharing(vertex, way.parts, weights.most_alone);
  double own_results = results;
  if (is_shared) {
    const auto parts = static_cast<double>(sharing_parts(static_cast<std::int64_t>(weights.workers)));
    own_results = std::min(results, std::ceil(results / parts) * std::ceil(parts / weights.workers));
  }
  const double own_calls = own_results * calls / results;
  FormatCost cost{.compute = flops(vertex) / calls * own_calls,
                  .network = is_shared ? bytes_of(vertex) : 0,
                  .tuples = own_calls,
                  .read = read_bytes * own_calls,
                  .intermediate = result_bytes * own_calls,
                  .statements = is_shared ? shared_statements : 1,
                  .stored = bytes_of(vertex)};
  if (is_reduced_in_parts(vertex, way.parts)) {
    cost.compute += static_cast<double>(element_count(vertex.bound)) / results * own_calls;
    cost.tuples += own_calls;
    cost.intermediate += (read_bytes + result_bytes) * own_calls + result_bytes * own_results;
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
  bool is_same = true;
  for (std::size_t d = 0; d < from.size(); ++d) {
    const auto [known, is_new] = pieces_.try_emplace({tensor.bound[d].value(), from[d], to[d]}, 0);
    if (is_new) known->second = static_cast<double>(count_of_pieces(tensor.bound[d], from[d], to[d]));
    pieces *= known->second;
    is_same = is_same && known->second == static_cast<double>(from[d].parts) && from[d].parts == to[d].parts;
  }
  if (is_same) return {};
  const double bytes = bytes_of(tensor);
  const bool is_put_together = pieces > tuples_of(to);
  return {.read = bytes / tuples_of(from) * pieces,
          .intermediate = (is_put_together ? 3 : 1) * bytes,
          .statements = 1,
          .pieces = pieces + (is_put_together ? tuples_of(to) : 0),
          .stored = bytes};
}

}  // namespace einrel
