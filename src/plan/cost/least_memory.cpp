#include "plan/cost/least_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/cost/cost.h"
#include "plan/staying_inputs.h"

namespace einrel {
namespace {

std::int64_t bytes_of_all(const Vertex& tensor) {
  return checked_multiply(element_count(tensor.bound), static_cast<std::int64_t>(size_of(tensor.dtype)));
}

/// What lies between the joins of a vertex that is not cut, which is no more than of one that is.
std::int64_t bytes_between_joins(const Vertex& vertex) {
  const Shape space = label_extents(vertex);
  VertexPlan whole;
  whole.parts.assign(space.size(), 1);
  const std::int64_t each = bytes_between(vertex, whole);
  return each == 0 ? 0 : checked_multiply(each, element_count(space));
}

std::int64_t share_of(std::int64_t bytes, std::int64_t sites) { return bytes / sites + (bytes % sites == 0 ? 0 : 1); }

}  // namespace

std::vector<std::optional<std::size_t>> last_readers(const EinGraph& graph) {
  const std::size_t count = graph.vertices.size();
  std::vector<std::optional<std::size_t>> last(count);
  for (std::size_t v = 0; v < count; ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (!is_input(vertex)) last[v] = v;
    for (const std::size_t operand : operands_read(vertex)) last[vertex.inputs[operand].index] = v;
  }
  for (const VertexId output : graph.outputs) last[output.index] = count - 1;
  for (const State& state : graph.steps.states) last[state.now.index] = count - 1;
  for (std::size_t v = 0; v < count; ++v) {
    if (last[v] && stays(graph.vertices[v])) last[v] = count - 1;
  }
  return last;
}

LeastPeak least_peak_of(const EinGraph& graph, std::int64_t sites) {
  const std::vector<std::optional<std::size_t>> last = last_readers(graph);
  std::vector<std::int64_t> freed(graph.vertices.size(), 0);
  std::int64_t alive = 0;
  const auto keep = [&](std::size_t v) {
    if (!last[v]) return;
    const std::int64_t bytes = bytes_of_all(graph.vertices[v]);
    alive = checked_add(alive, bytes);
    freed[*last[v]] += bytes;
  };
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (is_input(graph.vertices[v])) keep(v);
  }
  LeastPeak least;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (!is_input(vertex)) {
      keep(v);
      const std::int64_t bytes = share_of(checked_add(alive, bytes_between_joins(vertex)), sites);
      if (bytes > least.bytes) least = {bytes, v};
    }
    alive -= freed[v];
  }
  return least;
}

std::int64_t least_input_bytes(const EinGraph& graph, std::int64_t sites) {
  const std::vector<std::optional<std::size_t>> last = last_readers(graph);
  std::int64_t bytes = 0;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (is_input(graph.vertices[v]) && last[v]) bytes = checked_add(bytes, bytes_of_all(graph.vertices[v]));
  }
  return share_of(bytes, sites);
}

std::string always_over_limit(const EinGraph& graph, std::int64_t sites, std::int64_t limit) {
  const LeastPeak least = least_peak_of(graph, sites);
  if (least.bytes <= limit) return "";
  const auto [needed, allowed] = bytes_texts(least.bytes, limit);
  return fmt::format(
      "none can fit: while {} is computed, what is needed takes {} on a site even where it is shared out "
      "evenly over {}, and the limit is {} a site; give more, or more sites",
      graph.vertices[least.vertex].name, needed, counted(static_cast<std::size_t>(sites), "site"), allowed);
}

}  // namespace einrel
