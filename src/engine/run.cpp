#include "engine/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "base/suggest.h"
#include "engine/memory.h"
#include "kernel/evaluate.h"

namespace einrel {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// For each vertex, the last one that reads it; none (the end) for outputs.
std::vector<std::size_t> last_reads(const EinGraph& graph) {
  std::vector<std::size_t> last(graph.vertices.size(), graph.vertices.size());
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    for (const VertexId input : graph.vertices[v].inputs) last[input.index] = v;
  }
  for (const VertexId output : graph.outputs) last[output.index] = graph.vertices.size();
  return last;
}

}  // namespace

ScalarBindings bind_scalars(const EinGraph& graph, const ScalarBindings& given) {
  ScalarBindings bound;
  std::vector<std::string> problems;
  std::vector<std::string> known;
  for (const ScalarDeclaration& scalar : graph.scalars) {
    known.push_back(scalar.name);
    const auto found = given.find(scalar.name);
    if (found == given.end() && !scalar.value) {
      problems.push_back(
          fmt::format("scalar '{}' has no value: give it with --scalar {}=...", scalar.name, scalar.name));
      continue;
    }
    const double value = found == given.end() ? *scalar.value : found->second;
    if (scalar.integer_type && !is_exact(value, *scalar.integer_type)) {
      problems.push_back(
          fmt::format("scalar '{}' meets integers: {} is no {}", scalar.name, value, name_of(*scalar.integer_type)));
    }
    bound[scalar.name] = value;
  }
  for (const auto& [name, value] : given) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = did_you_mean(name, known);
    problems.push_back(fmt::format("--scalar {}={}: the program has no scalar '{}'{}{}", name, value, name,
                                   near.empty() ? "" : "; ", near));
  }
  if (!problems.empty()) throw UserError(fmt::format("{}", fmt::join(problems, "\n")));
  return bound;
}

RunReport run(const Compiled& compiled, TensorBindings inputs, const ScalarBindings& scalars, Workers& workers,
              const ProgressListener& progress) {
  const EinGraph& graph = compiled.graph;
  LayoutBindings layouts;
  for (const auto& [name, tensor] : inputs) layouts[name] = tensor.strides();
  const auto start = std::chrono::steady_clock::now();
  RunReport report;
  report.predicted_peak_bytes = forecast_memory(graph, layouts).peak_bytes;
  RunProgress state;
  for (const Vertex& vertex : graph.vertices) {
    state.flops_total += flops(vertex);
    state.total += std::holds_alternative<Input>(vertex.op) ? 0U : 1U;
  }
  const std::vector<std::size_t> last_read = last_reads(graph);
  std::vector<std::optional<Tensor>> tensors(graph.vertices.size());
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    state.vertex = vertex.name;
    state.seconds = seconds_since(start);
    const bool is_input = std::holds_alternative<Input>(vertex.op);
    if (progress && !is_input) progress(state);
    if (is_input) {
      tensors[v] = std::move(inputs.at(vertex.name));
      inputs.erase(vertex.name);
    } else {
      std::vector<Tensor> operands;
      for (const VertexId input : vertex.inputs) operands.push_back(*tensors[input.index]);
      tensors[v] = evaluate(vertex, operands, scalars, workers);
    }
    report.vertex_seconds.push_back(seconds_since(start) - state.seconds);
    for (const VertexId input : vertex.inputs) {
      if (last_read[input.index] == v) tensors[input.index].reset();  // views keep what they share alive
    }
    state.done += is_input ? 0U : 1U;
    state.flops_done += flops(vertex);
  }
  for (const VertexId output : graph.outputs) report.outputs.insert({graph[output].name, *tensors[output.index]});
  report.seconds = seconds_since(start);
  report.measured_peak_bytes = peak_resident_bytes().value_or(0);
  state.seconds = report.seconds;
  if (progress) progress(state);
  return report;
}

}  // namespace einrel
