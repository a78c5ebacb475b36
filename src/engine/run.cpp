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
#include "kernel/fusion/fusion.h"

namespace einrel {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A run under way: the tensors that are there, and the steps of it.
class Running {
 public:
  Running(const Compiled& compiled, TensorBindings inputs, const ScalarBindings& scalars, Workers& workers)
      : graph_(compiled.graph),
        scalars_(scalars),
        workers_(workers),
        tensors_(graph_.vertices.size()),
        readers_left_(graph_.vertices.size(), 0),
        fusion_of_(graph_.vertices.size(), nullptr) {
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      const Vertex& vertex = graph_.vertices[v];
      for (const VertexId input : vertex.inputs) ++readers_left_[input.index];
      if (is_input(v)) tensors_[v] = std::move(inputs.at(vertex.name));
    }
    for (const VertexId output : graph_.outputs) ++readers_left_[output.index];  // the report
    for (const Fusion& fusion : compiled.fusions) {
      for (const std::size_t member : fusion.members) fusion_of_[member] = &fusion;
    }
  }

  bool is_input(std::size_t v) const { return std::holds_alternative<Input>(graph_.vertices[v].op); }
  /// A member of a fusion is computed with the last one.
  bool is_computed_later(std::size_t v) const { return fusion_of_[v] != nullptr && fusion_of_[v]->members.back() != v; }

  void compute(std::size_t v) {
    if (fusion_of_[v] != nullptr) {
      run_fusion(*fusion_of_[v]);
      for (const std::size_t member : fusion_of_[v]->members) free_operands(member);
      return;
    }
    const Vertex& vertex = graph_.vertices[v];
    std::vector<Tensor> operands;
    for (const VertexId input : vertex.inputs) operands.push_back(*tensors_[input.index]);
    tensors_[v] = evaluate(vertex, operands, scalars_, workers_);
    free_operands(v);
  }

  const Tensor& tensor(VertexId id) const { return *tensors_[id.index]; }

 private:
  void run_fusion(const Fusion& fusion) {
    std::vector<ArrayLayout> layouts;
    std::vector<const std::byte*> operands;
    for (const std::size_t operand : fusion.operands) {
      layouts.push_back(layout_of(*tensors_[operand]));
      operands.push_back(tensors_[operand]->data());
    }
    std::vector<std::byte*> results;
    for (const std::size_t result : fusion.results) {
      const Vertex& vertex = graph_.vertices[result];
      tensors_[result] = Tensor(vertex.dtype, vertex.bound, workers_.pool());
      results.push_back(tensors_[result]->mutable_data());
    }
    workers_.run(prepare_fusion(fusion, layouts, scalars_), {operands.data(), nullptr, results.data()});
  }

  /// After the last use. Views keep what they share alive.
  void free_operands(std::size_t v) {
    for (const VertexId input : graph_.vertices[v].inputs) {
      if (--readers_left_[input.index] == 0) tensors_[input.index].reset();
    }
  }

  const EinGraph& graph_;
  const ScalarBindings& scalars_;
  Workers& workers_;
  std::vector<std::optional<Tensor>> tensors_;
  std::vector<std::size_t> readers_left_;
  std::vector<const Fusion*> fusion_of_;
};

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
  const auto start = std::chrono::steady_clock::now();
  RunReport report;
  for (const auto& [name, tensor] : inputs) report.layouts[name] = tensor.strides();
  report.predicted_peak_bytes = forecast_memory(compiled, report.layouts).peak_bytes;
  Running running(compiled, std::move(inputs), scalars, workers);
  RunProgress state;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    state.flops_total += flops(graph.vertices[v]);
    state.total += running.is_input(v) ? 0U : 1U;
  }
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    state.vertex = graph.vertices[v].name;
    state.seconds = seconds_since(start);
    if (!running.is_input(v)) {
      if (progress) progress(state);
      if (!running.is_computed_later(v)) running.compute(v);
      ++state.done;
    }
    report.vertex_seconds.push_back(seconds_since(start) - state.seconds);
    state.flops_done += flops(graph.vertices[v]);
  }
  for (const VertexId output : graph.outputs) report.outputs.insert({graph[output].name, running.tensor(output)});
  report.seconds = seconds_since(start);
  report.measured_peak_bytes = peak_resident_bytes().value_or(0);
  state.seconds = report.seconds;
  if (progress) progress(state);
  return report;
}

}  // namespace einrel
