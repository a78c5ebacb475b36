#include "train/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "train/collected.h"
#include "train/sample_uses.h"

namespace einrel {
namespace {

/// The program as it computes these tensors of its states, which are inputs like others then.
EinGraph without_steps(EinGraph graph, const std::vector<std::string>& outputs) {
  graph.steps = {};
  for (ScalarDeclaration& scalar : graph.scalars) scalar.is_iteration = false;
  graph.outputs.clear();
  for (const std::string& name : outputs) {
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      if (graph.vertices[v].name == name) graph.outputs.push_back(VertexId{v});
    }
  }
  return graph;
}

/// Tensors that are computed from samples, and have no dimension of them, but are read by some that have.
std::vector<std::string> statistics_of(const EinGraph& graph, const Feeds& feeds) {
  const std::vector<SampleUse> uses = sample_uses(graph, feeds);
  std::set<std::size_t> statistics;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (!uses[v].has_samples()) continue;
    for (const VertexId input : graph.vertices[v].inputs) {
      const SampleUse& use = uses[input.index];
      if (!use.feeds.empty() && !use.has_samples()) statistics.insert(input.index);
    }
  }
  std::vector<std::string> names;
  for (const std::size_t v : statistics) names.push_back(graph.vertices[v].name);
  return names;
}

/// With these tensors as inputs.
EinGraph given(EinGraph graph, const std::vector<std::string>& names) {
  for (Vertex& vertex : graph.vertices) {
    if (std::find(names.begin(), names.end(), vertex.name) == names.end()) continue;
    vertex.inputs.clear();
    vertex.op = Input{};
  }
  return graph;
}

void set_steps_done(ScalarBindings& scalars, std::int64_t steps_done) {
  const auto iteration = scalars.find(iteration_name);
  if (iteration != scalars.end()) iteration->second = static_cast<double>(steps_done);
}

}  // namespace

std::optional<Vertex> noise_in_tests(const EinGraph& graph, const std::vector<std::string>& names) {
  for (const Vertex& vertex : needed_for_outputs(without_steps(graph, names)).vertices) {
    const auto* const einsum = einsum_of(vertex);
    if (einsum == nullptr) continue;
    const auto is_random = [](const ScalarStep& step) { return std::holds_alternative<ApplyRandom>(step.op); };
    if (std::any_of(einsum->body.steps.begin(), einsum->body.steps.end(), is_random)) return vertex;
  }
  return std::nullopt;
}

std::vector<Batch> batches_of(const std::vector<std::int64_t>& samples, std::int64_t size) {
  std::vector<Batch> batches;
  for (auto from = samples.begin(); from != samples.end();) {
    const auto end = from + std::min<std::ptrdiff_t>(size, samples.end() - from);
    batches.emplace_back(from, end);
    from = end;
  }
  return batches;
}

Evaluator::Evaluator(const TrainRequest& request, const Feeds& feeds, std::vector<std::int64_t> samples,
                     const Feeds& training, Batch statistics, std::vector<std::string> names, const EinGraph& step,
                     const StepProgram* beside, Job job)
    : request_(request),
      feeds_(feeds),
      samples_(std::move(samples)),
      training_(training),
      statistics_(std::move(statistics)),
      names_(std::move(names)),
      beside_(beside),
      job_(std::move(job)) {
  if (!statistics_.empty()) {
    make_ready({fmt::format("the {} of --calibrate-with", counted(statistics_.size(), "sample")),
                "take fewer, or leave that out"},
               [&] { make_calibration(step); });
  }
  const char* const option = request.hold_out ? "--hold-out" : "--test";
  const auto count = static_cast<std::int64_t>(samples_.size());
  if (count >= request.batch) {
    make_ready({fmt::format("the tests, in batches of {}", request.batch), fmt::format("leave out {}", option)},
               [&] { make_program(request.batch, step); });
  }
  if (const std::int64_t left = count % request.batch; left > 0) {
    make_ready({fmt::format("the last batch of the tests, of {}", counted(static_cast<std::size_t>(left), "sample")),
                fmt::format("test on another number of samples ({}), or take batches of another size", option)},
               [&] { make_program(left, step); });
  }
}

void Evaluator::make_calibration(const EinGraph& step) {
  const CheckedProgram checked = check_for(request_, training_, static_cast<std::int64_t>(statistics_.size()));
  statistic_names_ = statistics_of(needed_for_outputs(without_steps(*checked.graph, names_)), training_);
  if (statistic_names_.empty()) return;
  Compiled compiled = compile(request_.source.name(), without_steps(*checked.graph, statistic_names_), {}, std::nullopt,
                              request_.passes);
  check_states_fit(request_, step, compiled.graph);
  calibration_.emplace(std::move(compiled), request_, beside_, job_);
}

void Evaluator::make_program(std::int64_t batch, const EinGraph& step) {
  const CheckedProgram checked = check_for(request_, feeds_, batch);
  EinGraph graph = given(without_steps(*checked.graph, names_), statistic_names_);
  Compiled compiled = compile(request_.source.name(), std::move(graph), {}, std::nullopt, request_.passes);
  check_states_fit(request_, step, compiled.graph);
  programs_.emplace(batch, StepProgram(std::move(compiled), request_, beside_, job_));
}

InputSources Evaluator::calibrated(const InputSources& sources, std::int64_t steps_done) {
  InputSources all = sources;
  for (auto& [name, source] : assemble(training_, statistics_)) all[name] = std::move(source);
  const std::vector<TaskOutput> outputs = program_outputs(calibration_->tasks());
  Collected collected(outputs);
  ScalarBindings scalars = calibration_->scalars();
  set_steps_done(scalars, steps_done);
  calibration_->step(all, collected.writers(), scalars, {}, training_, statistics_);
  const std::vector<Tensor> values = on_all_ranks(outputs, collected.take(job_), job_);
  InputSources statistics;
  for (std::size_t o = 0; o < outputs.size(); ++o) statistics[outputs[o].name] = values[o];
  return statistics;
}

std::vector<double> Evaluator::run(const InputSources& states, std::int64_t steps_done) {
  InputSources sources = states;
  for (const auto& [name, file] : constant_inputs(request_, check_for(request_, feeds_, request_.batch), feeds_))
    sources[name] = file;
  if (calibration_) {
    for (auto& [name, source] : calibrated(sources, steps_done)) sources[name] = std::move(source);
  }
  std::vector<Batch> batches = batches_of(samples_, request_.batch);
  BatchReader reader(feeds_, batches);
  std::vector<double> sums(names_.size(), 0);
  for (std::size_t from = 0; from < batches.size();) {
    const std::size_t size = batches[from].size();
    std::size_t end = from;
    while (end < batches.size() && batches[end].size() == size) ++end;
    StepProgram& program = programs_.at(static_cast<std::int64_t>(size));
    ScalarBindings scalars = program.scalars();
    set_steps_done(scalars, steps_done);
    const auto after = [&](const std::vector<double>& values) {
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i] * static_cast<double>(size);
      return true;
    };
    program.step(sources, reader, names_, scalars, {.count = end - from}, after);
    from = end;
  }
  for (double& sum : sums) sum /= static_cast<double>(samples_.size());
  return sums;
}

}  // namespace einrel
