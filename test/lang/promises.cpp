#include "lang/promises.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>
#include <utility>

#include "base/error.h"
#include "einsum/check/check.h"

namespace einrel::test {
namespace {

void append(std::vector<std::string>& problems, const std::string& where, const std::vector<std::string>& more) {
  for (const std::string& problem : more) problems.push_back(fmt::format("{}: {}", where, problem));
}

/// The steps of a program by one configuration: each evaluates a graph, and what is its next value becomes a state.
std::optional<Outputs> run_by(const Configuration& configuration, const Runnable& runnable) {
  if (!runnable.initial) return configuration.run(runnable.graph, runnable.inputs, runnable.scalars);
  if (configuration.run_steps) return configuration.run_steps(runnable);
  TensorBindings inputs = runnable.inputs;
  ScalarBindings scalars = runnable.scalars;
  const auto step = [&](const EinGraph& graph) {
    std::optional<Outputs> outputs = configuration.run(graph, inputs, scalars);
    if (!outputs) return outputs;
    for (const State& state : graph.steps.states) {
      if (state.next) inputs[graph[state.now].name] = outputs->at(graph[graph.outputs[*state.next]].name);
    }
    return outputs;
  };
  std::optional<Outputs> outputs = step(*runnable.initial);
  for (std::size_t done = 0; outputs && done < runnable.steps; ++done) {
    scalars[iteration_name] = static_cast<double>(done);
    outputs = step(runnable.graph);
    if (outputs && runnable.graph.steps.until && values_of(outputs->at(until_name)).front() != 0) break;
  }
  return outputs;
}

/// Where a run does not fail with the words that the document has.
std::vector<std::string> broken_failure(const Document& document, const std::vector<Configuration>& configurations) {
  const Runnable runnable = prepare(document, document.dims);
  std::vector<std::string> problems;
  for (const Configuration& configuration : configurations) {
    std::string said = "nothing is said";
    try {
      if (!configuration.run(runnable.graph, runnable.inputs, runnable.scalars)) continue;
    } catch (const RunError& error) {
      said = error.what();
    }
    for (const std::string& words : document.failure) {
      if (said.find(words) == std::string::npos)
        problems.push_back(fmt::format("{}: '{}' is not in '{}'", configuration.name, words, said));
    }
  }
  return problems;
}

}  // namespace

Configuration of_states(std::string name, std::function<Outputs(const Runnable&)> run_steps) {
  const auto nothing = [](const EinGraph&, const TensorBindings&, const ScalarBindings&) { return std::nullopt; };
  return {std::move(name), nothing, std::move(run_steps)};
}

std::vector<std::string> broken_run(const Document& document, const Dims& dims, bool compare_values,
                                    const std::vector<Configuration>& configurations) {
  const Runnable runnable = prepare(document, dims);
  std::vector<std::string> problems;
  std::optional<Outputs> first;
  for (const Configuration& configuration : configurations) {
    const std::optional<Outputs> run = run_by(configuration, runnable);
    if (!run) continue;
    const Outputs& outputs = *run;
    const std::string where = fmt::format("{} ({})", configuration.name, fmt::join(dims, ", "));
    if (compare_values) append(problems, where, broken_values(document, outputs));
    if (compare_values) append(problems, where, broken_types(document, outputs));
    append(problems, where, broken_sames(document, outputs));
    if (!first) first = outputs;
    append(problems, fmt::format("{} against {}", where, configurations.front().name),
           differences(document, outputs, *first));
  }
  return problems;
}

std::vector<std::string> broken_promises(const Document& document, const std::vector<Configuration>& configurations) {
  if (!document.errors.empty()) {
    std::vector<Diagnostic> found;
    try {
      prepare(document, document.dims);
    } catch (const ProgramError& error) {
      found = error.diagnostics();
    } catch (const UserError& error) {  // one complaint a line
      std::istringstream lines(error.what());
      for (std::string line; std::getline(lines, line);) found.push_back({line, {}, ""});
    }
    return broken_errors(document, found);
  }
  if (!document.failure.empty()) return broken_failure(document, configurations);
  std::vector<std::string> problems = broken_run(document, document.dims, true, configurations);
  Document by_chance = document;
  by_chance.inputs.clear();
  by_chance.seed = document.seed.value_or(1);
  for (const Dims& other : document.other_dims) {
    Dims dims = document.dims;
    for (const auto& [label, extent] : other) dims[label] = extent;
    append(problems, "also", broken_run(by_chance, dims, false, configurations));
  }
  return problems;
}

}  // namespace einrel::test
