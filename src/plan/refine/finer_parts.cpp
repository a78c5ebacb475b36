#include "plan/refine/finer_parts.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <tuple>

#include "einsum/graph/vertex_facts.h"
#include "plan/cost/bound_cost.h"
#include "plan/cost/cost.h"
#include "plan/placed_inputs.h"

namespace einrel {
namespace {

std::int64_t part_of(std::int64_t extent, std::int64_t parts) { return (extent + parts - 1) / parts; }

/// Elements that a part reads of an operand. Where it is read at constants, one position of an input is read, and of
/// what is computed one part, if it has several (exec/tasks/constant_reads).
double elements_read(const EinGraph& graph, const Plan& plan, std::size_t v, std::size_t operand) {
  const Vertex& vertex = graph.vertices[v];
  const std::size_t read = vertex.inputs[operand].index;
  const Vertex& tensor = graph.vertices[read];
  PartitionVector parts = operand_parts(vertex, operand, plan.vertices[v].parts);
  const PartitionVector of_tensor = result_parts(tensor, plan.vertices[read].parts);
  for (std::size_t d = 0; d < parts.size(); ++d) {
    if (!is_at_constant(vertex, operand, d)) continue;
    parts[d] = is_input(tensor) ? std::max<std::int64_t>(tensor.bound[d].value(), 1) : of_tensor[d];
  }
  return chunk_elements(tensor.bound, parts);
}

/// What one part reads and makes, another like that which it makes where these are added up afterwards, and what lies
/// between its joins.
double part_bytes(const EinGraph& graph, const Plan& all, std::size_t v) {
  const Vertex& vertex = graph.vertices[v];
  const VertexPlan& plan = all.vertices[v];
  if (is_input(vertex)) return chunk_elements(vertex.bound, plan.parts) * static_cast<double>(size_of(vertex.dtype));
  const std::int64_t element = std::max(partial_bytes(vertex), static_cast<std::int64_t>(size_of(vertex.dtype)));
  const double results = reduces_onto_result(vertex) ? 1 : 2;
  double bytes =
      results * chunk_elements(vertex.bound, result_parts(vertex, plan.parts)) * static_cast<double>(element);
  for (const std::size_t operand : operands_read(vertex)) {
    const Vertex& tensor = graph[vertex.inputs[operand]];
    bytes += elements_read(graph, all, v, operand) * static_cast<double>(size_of(tensor.dtype));
  }
  const auto between = static_cast<double>(bytes_between(vertex, plan));
  return bytes + (between == 0 ? 0 : between * chunk_elements(label_extents(vertex), plan.parts));
}

/// Along each label of a vertex, the most parts in which an operand lies that it reads.
PartitionVector parts_of_operands(const EinGraph& graph, const Plan& plan, std::size_t v) {
  const Vertex& vertex = graph.vertices[v];
  PartitionVector most(plan.vertices[v].parts.size(), 1);
  if (is_input(vertex)) return most;
  for (const std::size_t operand : operands_read(vertex)) {
    const std::size_t producer = vertex.inputs[operand].index;
    const PartitionVector parts = result_parts(graph.vertices[producer], plan.vertices[producer].parts);
    const std::vector<std::optional<std::size_t>> labels = operand_labels(vertex, operand);
    for (std::size_t d = 0; d < labels.size(); ++d) {
      if (labels[d]) most[*labels[d]] = std::max(most[*labels[d]], parts[d]);
    }
  }
  return most;
}

/// By vertex and label, whether a reader has its result at a constant there, as A[3,b] has, which needs one part then.
std::vector<std::vector<bool>> labels_at_constants(const EinGraph& graph) {
  std::vector<std::vector<bool>> found;
  for (const Vertex& vertex : graph.vertices) {
    found.emplace_back(label_extents(vertex).size(), false);
    for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
      const std::size_t read = vertex.inputs[o].index;
      const std::vector<std::optional<std::size_t>> labels = result_labels(graph.vertices[read]);
      for (std::size_t d = 0; d < labels.size(); ++d) {
        if (labels[d] && is_at_constant(vertex, o, d)) found[read][*labels[d]] = true;
      }
    }
  }
  return found;
}

/// Which label of a vertex to cut next, into twice as many parts.
class NextCut {
 public:
  NextCut(const EinGraph& graph, const Plan& plan, std::size_t v, std::vector<bool> at_constants = {})
      : vertex_(graph.vertices[v]),
        most_(most_parts(vertex_, graph)),
        of_operands_(parts_of_operands(graph, plan, v)),
        at_constants_(std::move(at_constants)),
        is_late_(most_.size(), false) {
    at_constants_.resize(most_.size(), false);
    if (reduces_onto_result(vertex_)) return;
    for (const std::size_t label : reduced_labels(vertex_)) is_late_[label] = true;
  }

  /// Nothing where no label can be.
  std::optional<std::size_t> operator()(const PartitionVector& parts) const {
    std::optional<std::size_t> found;
    for (std::size_t l = 0; l < parts.size(); ++l) {
      if (2 * parts[l] <= most_[l] && (!found || rank(l, parts) > rank(*found, parts))) found = l;
    }
    return found;
  }

 private:
  std::tuple<bool, bool, bool, std::int64_t> rank(std::size_t label, const PartitionVector& parts) const {
    return {at_constants_[label], parts[label] < of_operands_[label], !is_late_[label],
            part_of(most_[label], parts[label])};
  }

  const Vertex& vertex_;
  PartitionVector most_;
  PartitionVector of_operands_;
  std::vector<bool> at_constants_;
  std::vector<bool> is_late_;  ///< labels whose partial results would all be alive together
};

/// Inputs lie in chunks no larger than those of their readers, but where these count several labels along a dimension.
void cut_inputs(const EinGraph& graph, const Vertex& reader, Plan& plan, std::size_t v) {
  if (view_of(reader) != nullptr) return;
  for (const std::size_t operand : operands_read(reader)) {
    const std::size_t input = reader.inputs[operand].index;
    if (!lies_freely(graph.vertices[input])) continue;
    const PartitionVector needed = operand_parts(reader, operand, plan.vertices[v].parts);
    PartitionVector& parts = plan.vertices[input].parts;
    for (std::size_t d = 0; d < parts.size(); ++d) parts[d] = std::max(parts[d], needed[d]);
  }
}

/// Outputs are written from the chunks in which they lie. More parts of an uneven extent would have other borders, so
/// that an input did not lie as is given.
bool keeps_parts(const EinGraph& graph, std::size_t v, InputParts inputs) {
  if (given_plan(graph.vertices[v])) return true;
  const bool is_output = std::find(graph.outputs.begin(), graph.outputs.end(), VertexId{v}) != graph.outputs.end();
  return inputs == InputParts::any_box && is_input(graph.vertices[v]) && !is_output;
}

}  // namespace

void make_parts_finer(const EinGraph& graph, Plan& plan, const std::vector<std::int64_t>& most_bytes,
                      InputParts inputs) {
  const std::vector<std::vector<bool>> at_constants = labels_at_constants(graph);
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (keeps_parts(graph, v, inputs)) continue;
    const Vertex& vertex = graph.vertices[v];
    const NextCut next(graph, plan, v, at_constants[v]);
    PartitionVector& parts = plan.vertices[v].parts;
    while (part_bytes(graph, plan, v) > static_cast<double>(most_bytes[v])) {
      const std::optional<std::size_t> label = next(parts);
      if (!label) break;
      parts[*label] *= 2;
    }
    if (!is_input(vertex) && inputs == InputParts::of_chunks) cut_inputs(graph, vertex, plan, v);
  }
}

bool can_be_finer(const EinGraph& graph, const Plan& plan, std::size_t v) {
  return !given_plan(graph.vertices[v]) && NextCut(graph, plan, v)(plan.vertices[v].parts).has_value();
}

bool cut_operands(const EinGraph& graph, Plan& plan, std::size_t reader, InputParts inputs) {
  const Vertex& vertex = graph.vertices[reader];
  if (is_input(vertex)) return false;
  bool has_cut = false;
  for (const std::size_t operand : operands_read(vertex)) {
    const std::size_t producer = vertex.inputs[operand].index;
    if (keeps_parts(graph, producer, inputs)) continue;
    const PartitionVector most = most_parts(graph.vertices[producer], graph);
    const PartitionVector needed = operand_parts(vertex, operand, plan.vertices[reader].parts);
    const std::vector<std::optional<std::size_t>> labels = result_labels(graph.vertices[producer]);
    PartitionVector& parts = plan.vertices[producer].parts;
    for (std::size_t d = 0; d < labels.size(); ++d) {
      while (labels[d] && parts[*labels[d]] < needed[d] && 2 * parts[*labels[d]] <= most[*labels[d]]) {
        parts[*labels[d]] *= 2;
        has_cut = true;
      }
    }
  }
  return has_cut;
}

double copies_of(const EinGraph& graph, const Plan& plan, InputParts inputs) {
  double all = 0;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    for (std::size_t operand = 0; operand < vertex.inputs.size(); ++operand) {
      const std::size_t producer = vertex.inputs[operand].index;
      if (inputs == InputParts::any_box && is_input(graph.vertices[producer])) continue;
      PartitionVector have = result_parts(graph.vertices[producer], plan.vertices[producer].parts);
      const PartitionVector need = operand_parts(vertex, operand, plan.vertices[v].parts);
      if (have == need) continue;
      for (std::size_t d = 0; d < have.size(); ++d) {
        if (is_at_constant(vertex, operand, d)) have[d] = 1;
      }
      double copies = 1;
      for (std::size_t d = 0; d < have.size(); ++d) copies *= static_cast<double>(std::max(have[d], need[d]));
      all += copies;
    }
  }
  return all;
}

double calls_of(const EinGraph& graph, const Plan& plan) {
  double calls = 0;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (is_input(graph.vertices[v])) continue;
    const PartitionVector& parts = plan.vertices[v].parts;
    calls += std::accumulate(parts.begin(), parts.end(), 1.0, std::multiplies<>());
  }
  return calls;
}

}  // namespace einrel
