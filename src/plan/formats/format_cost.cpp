#include "plan/formats/format_cost.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "einsum/vertex_facts.h"
#include "plan/plan.h"
#include "tra/repartition.h"

namespace einrel {
namespace {

/// What the busiest of the workers has of so many tuples.
double busiest_share(double tuples, double workers) { return std::ceil(tuples / workers); }

bool is_reduced_in_parts(const Vertex& vertex, const std::vector<std::int64_t>& parts) {
  const std::vector<std::size_t> reduced = reduced_labels(vertex);
  return std::any_of(reduced.begin(), reduced.end(), [&](std::size_t label) { return parts[label] > 1; });
}

/// Bytes that a worker gets for a join: of the smaller relation all that it has not, or of each its share. Without a
/// key that both have there is only the first way.
double join_traffic(const EinGraph& graph, const Implementation& way, double workers) {
  if (way.reads.size() < 2) return 0;
  double smallest = bytes_of(graph.vertices[way.reads.front().tensor]);
  double all = 0;
  for (const NeededFormat& need : way.reads) {
    smallest = std::min(smallest, bytes_of(graph.vertices[need.tensor]));
    all += bytes_of(graph.vertices[need.tensor]);
  }
  const double rest = (workers - 1) / workers;
  const bool has_keys = std::all_of(way.reads.begin(), way.reads.end(),
                                    [](const NeededFormat& need) { return tuples_of(need.format) > 1; });
  return has_keys ? std::min(smallest, all / workers) * rest : smallest * rest;
}

}  // namespace

FormatCost& FormatCost::operator+=(const FormatCost& other) {
  compute += other.compute;
  network += other.network;
  tuples += other.tuples;
  intermediate += other.intermediate;
  pieces += other.pieces;
  stored += other.stored;
  return *this;
}

double seconds_of(const FormatCost& cost, const FormatWeights& weights) {
  return cost.compute * weights.operation + cost.network * weights.network_byte + cost.tuples * weights.tuple +
         cost.intermediate * weights.intermediate_byte + cost.pieces * weights.piece +
         cost.stored * weights.stored_byte;
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
  const double busiest = busiest_share(calls, weights.workers);
  FormatCost cost{.compute = flops(vertex) / calls * busiest,
                  .network = join_traffic(graph, way, weights.workers),
                  .tuples = busiest,
                  .intermediate = (read_bytes + result_bytes) * busiest,
                  .stored = result_bytes * busiest_share(results, weights.workers)};
  if (is_reduced_in_parts(vertex, way.parts)) {
    const double folded = busiest_share(results, weights.workers);
    cost.compute += static_cast<double>(element_count(vertex.bound)) / results * busiest;
    cost.network += result_bytes * busiest * (weights.workers - 1) / weights.workers;
    cost.tuples += busiest;
    cost.intermediate += (read_bytes + result_bytes) * busiest + result_bytes * folded;
  }
  return cost;
}

FormatCost gathering_cost(const Vertex& input, const TensorFormat& format, const FormatWeights& weights) {
  const double busiest = busiest_share(tuples_of(format), weights.workers);
  const double bytes = bytes_of(input) / tuples_of(format) * busiest;
  return {.tuples = busiest, .intermediate = bytes, .stored = bytes};
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
  const double busiest = busiest_share(pieces, weights_.workers);
  const bool is_put_together = pieces > tuples_of(to);
  return {.network = bytes / weights_.workers * (weights_.workers - 1) / weights_.workers,
          .intermediate = bytes / tuples_of(from) * busiest + (is_put_together ? 3 : 1) * bytes / weights_.workers,
          .pieces = busiest + (is_put_together ? busiest_share(tuples_of(to), weights_.workers) : 0),
          .stored = bytes / weights_.workers};
}

}  // namespace einrel
