#include "engine/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "base/suggest.h"
#include "base/text.h"
#include "einsum/vertex_facts.h"

namespace einrel {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Which input stands at a place of the graph, if one does.
std::optional<std::size_t> input_at(const PreparedProgram& program, std::size_t place) {
  const std::vector<std::size_t>& places = program.input_places;
  const auto found = std::lower_bound(places.begin(), places.end(), place);
  if (found == places.end() || *found != place) return std::nullopt;
  return static_cast<std::size_t>(found - places.begin());
}

RunProgress nothing_done(const EinGraph& graph) {
  RunProgress progress;
  for (const Vertex& vertex : graph.vertices) {
    progress.flops_total += flops(vertex);
    progress.total += is_input(vertex) ? 0U : 1U;
  }
  return progress;
}

/// A run under way: the memory that there is.
class Running {
 public:
  Running(const PreparedProgram& program, std::span<const Tensor> inputs, Workers& workers, RunMemory& memory)
      : program_(program), inputs_(inputs), workers_(workers), places_(memory.places), operands_(memory.operands) {
    places_.resize(program.vertex_count);
    for (std::size_t i = 0; i < inputs.size(); ++i) places_[program.input_places[i]].data = inputs[i].data();
  }
  ~Running() {
    places_.clear();
    operands_.clear();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void compute(const PreparedStep& step) {
    operands_.clear();
    for (const std::size_t operand : step.operands) operands_.push_back(places_[operand].data);
    if (step.results.size() == 1) {
      workers_.run(step.kernel, {operands_.data(), make(step.results.front())});
    } else {
      std::vector<std::byte*> results;
      for (const PlacedTensor& result : step.results) results.push_back(make(result));
      workers_.run(step.kernel, {operands_.data(), nullptr, results.data()});
    }
    for (const std::size_t owner : step.freed) places_[owner].memory.reset();
  }

  std::vector<Tensor> outputs() const {
    std::vector<Tensor> outputs;
    outputs.reserve(program_.outputs.size());
    for (const auto& [owner, layout] : program_.outputs) {
      if (const auto input = input_at(program_, owner)) {
        outputs.push_back(inputs_[*input].restrided(layout.shape, layout.strides));
      } else {
        outputs.emplace_back(layout.dtype, layout.shape, layout.strides, places_[owner].data, places_[owner].memory);
      }
    }
    return outputs;
  }

 private:
  std::byte* make(const PlacedTensor& tensor) {
    RunMemory::Place& place = places_[tensor.owner];
    place.memory = allocate_elements(tensor.layout.dtype, tensor.layout.shape, workers_.pool());
    place.data = place.memory.get();
    return place.memory.get();
  }

  const PreparedProgram& program_;
  std::span<const Tensor> inputs_;
  Workers& workers_;
  std::vector<RunMemory::Place>& places_;
  std::vector<const std::byte*>& operands_;
};

std::vector<ArrayLayout> layouts_of(std::span<const Tensor> tensors) {
  std::vector<ArrayLayout> layouts;
  for (const Tensor& tensor : tensors) layouts.push_back(layout_of(tensor));
  return layouts;
}

bool is_for(const PreparedProgram& program, std::span<const Tensor> inputs, const ScalarBindings& scalars) {
  const auto fits = [](const ArrayLayout& layout, const Tensor& input) { return has_layout(input, layout); };
  return std::equal(program.inputs.begin(), program.inputs.end(), inputs.begin(), inputs.end(), fits) &&
         program.scalars == scalars;
}

}  // namespace

std::vector<std::string> unknown_scalars(const ScalarBindings& given, const std::vector<std::string>& known) {
  std::vector<std::string> problems;
  for (const auto& [name, value] : given) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = did_you_mean(name, known);
    problems.push_back(fmt::format("--scalar {}={}: the program has no scalar '{}'{}{}", printable(name), value,
                                   printable(name), near.empty() ? "" : "; ", near));
  }
  return problems;
}

ScalarBindings bind_scalars(const std::vector<ScalarDeclaration>& scalars, const ScalarBindings& given) {
  ScalarBindings bound;
  std::vector<std::string> problems;
  std::vector<std::string> known;
  for (const ScalarDeclaration& scalar : scalars) {
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
  for (std::string& unknown : unknown_scalars(given, known)) problems.push_back(std::move(unknown));
  if (!problems.empty()) throw UserError(fmt::format("{}", fmt::join(problems, "\n")));
  return bound;
}

RunReport run(const Compiled& compiled, TensorBindings inputs, const ScalarBindings& scalars, Workers& workers,
              const ProgressListener& progress) {
  const EinGraph& graph = compiled.graph;
  const auto start = std::chrono::steady_clock::now();
  RunReport report;
  std::vector<Tensor> tensors;
  for (const Vertex& vertex : graph.vertices) {
    if (!is_input(vertex)) continue;
    tensors.push_back(std::move(inputs.at(vertex.name)));
    report.layouts[vertex.name] = tensors.back().strides();
  }
  const PreparedProgram program = prepare(compiled, layouts_of(tensors), scalars);
  report.predicted_peak_bytes = program.peak_bytes;
  RunMemory memory;
  Running running(program, tensors, workers, memory);
  RunProgress state = nothing_done(graph);
  auto step = program.steps.begin();
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    state.vertex = graph.vertices[v].name;
    state.seconds = seconds_since(start);
    if (progress && !is_input(graph.vertices[v])) progress(state);
    if (step != program.steps.end() && step->vertex == v) {
      running.compute(*step);
      for (const std::size_t freed : step->freed) {
        if (const auto input = input_at(program, freed)) const Tensor gone = std::move(tensors[*input]);
      }
      ++step;
    }
    state.done += is_input(graph.vertices[v]) ? 0U : 1U;
    state.flops_done += flops(graph.vertices[v]);
    report.vertex_seconds.push_back(seconds_since(start) - state.seconds);
  }
  const std::vector<Tensor> outputs = running.outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) report.outputs.insert({graph[graph.outputs[i]].name, outputs[i]});
  report.seconds = seconds_since(start);
  report.runs = {report.seconds};
  state.seconds = report.seconds;
  if (progress) progress(state);
  return report;
}

std::vector<Tensor> Runner::run(std::span<const Tensor> inputs, const ScalarBindings& scalars, Workers& workers) {
  const PreparedProgram& program = prepared_for(inputs, scalars);
  Running running(program, inputs, workers, memory_);
  for (const PreparedStep& step : program.steps) running.compute(step);
  return running.outputs();
}

const PreparedProgram& Runner::prepared_for(std::span<const Tensor> inputs, const ScalarBindings& scalars) {
  constexpr std::size_t most_kept = 8;
  const auto found = std::find_if(prepared_.rbegin(), prepared_.rend(),
                                  [&](const PreparedProgram& program) { return is_for(program, inputs, scalars); });
  if (found == prepared_.rend()) {
    PreparedProgram program = prepare(compiled_, layouts_of(inputs), scalars);
    if (prepared_.size() == most_kept) prepared_.erase(prepared_.begin());
    prepared_.push_back(std::move(program));
  } else {
    std::rotate(found.base() - 1, found.base(), prepared_.end());
  }
  return prepared_.back();
}

}  // namespace einrel
