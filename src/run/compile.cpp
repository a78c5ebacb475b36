#include "run/compile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 12;
  const std::size_t shown = std::min(names.size(), most);
  return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     shown < names.size() ? ", ..." : "");
}

[[noreturn]] void refuse_output(const std::string& name, const std::vector<std::string>& known) {
  const std::string near = did_you_mean(name, known);
  throw UserError(fmt::format("the program has no tensor '{}'; {}", printable(name),
                              near.empty() ? "its tensors are " + some_of(known) : near));
}

/// Whether a tensor is what a state is before the first step: in the graph of a step, nobody reads it.
bool is_initial_value(const EinGraph& graph, const std::string& name) {
  return std::any_of(graph.steps.states.begin(), graph.steps.states.end(),
                     [&](const State& state) { return initial_name(graph[state.now].name) == name; });
}

[[noreturn]] void refuse_initial_value(const std::string& name) {
  throw UserError(
      fmt::format("'{}' is computed before the first step; write the state itself, with --steps 1", printable(name)));
}

}  // namespace

EinGraph with_outputs(EinGraph graph, const std::vector<std::string>& names) {
  std::vector<VertexId> said = program_outputs(graph);
  for (const std::string& name : names) {
    if (is_initial_value(graph, name)) refuse_initial_value(name);
    const auto found = std::find_if(graph.vertices.begin(), graph.vertices.end(),
                                    [&](const Vertex& vertex) { return vertex.name == name; });
    if (found == graph.vertices.end()) {
      std::vector<std::string> known;
      for (const Vertex& vertex : graph.vertices) known.push_back(vertex.name);
      refuse_output(name, known);
    }
    const VertexId id{static_cast<std::size_t>(found - graph.vertices.begin())};
    if (std::find(said.begin(), said.end(), id) == said.end()) said.push_back(id);
  }
  const std::vector<VertexId> before = std::exchange(graph.outputs, said);
  const auto still_carried = [&](std::size_t position) {
    const auto known = std::find(graph.outputs.begin(), graph.outputs.end(), before[position]);
    const auto now = static_cast<std::size_t>(known - graph.outputs.begin());
    if (known == graph.outputs.end()) graph.outputs.push_back(before[position]);
    return now;
  };
  for (State& state : graph.steps.states) {
    if (state.next) state.next = still_carried(*state.next);
  }
  if (graph.steps.until) graph.steps.until = still_carried(*graph.steps.until);
  graph.steps.feedback = graph.outputs.size() - said.size();
  return graph;
}

void check_output_names(const std::vector<std::string>& outputs, const std::vector<std::string>& tensors) {
  for (const std::string& name : outputs) {
    if (std::find(tensors.begin(), tensors.end(), name) == tensors.end()) refuse_output(name, tensors);
  }
}

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void run_pass(const Pass& pass, Compiled& compiled) {
  const auto start = std::chrono::steady_clock::now();
  EinGraph after = pass.run(compiled.graph, compiled);
  verify(after);
  PassRecord& record = compiled.passes.emplace_back(
      PassRecord{pass.name, compiled.graph.vertices.size(), after.vertices.size(), seconds_since(start)});
  if (compiled.pass_options.are_told) record.changes = changes_between(compiled.graph, after);
  compiled.graph = std::move(after);
}

std::set<std::string> inputs_of(const EinGraph& graph) {
  std::set<std::string> names;
  for (const Vertex& vertex : graph.vertices) {
    if (is_input(vertex)) names.insert(vertex.name);
  }
  return names;
}

Compiled compile_graph(std::string name, EinGraph graph, const PassOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Compiled compiled;
  compiled.name = std::move(name);
  const std::set<std::string> declared = inputs_of(graph);
  compiled.graph = std::move(graph);
  compiled.pass_options = options;
  compiled.passes = options.checking;
  for (const Pass& pass : all_passes()) {
    if (pass.run != nullptr && !skips(compiled, pass.name)) run_pass(pass, compiled);
  }
  const std::set<std::string> needed = inputs_of(compiled.graph);
  std::set_difference(declared.begin(), declared.end(), needed.begin(), needed.end(),
                      std::back_inserter(compiled.unread));
  compiled.seconds = seconds_since(start);
  return compiled;
}

}  // namespace

Compiled compile(std::string name, EinGraph graph, const std::vector<std::string>& outputs,
                 const std::optional<EinGraph>& initial, const PassOptions& options) {
  std::shared_ptr<const Compiled> first;
  if (initial)
    first = std::make_shared<const Compiled>(compile_graph(name, *initial, {options.skipped, options.are_told}));
  Compiled compiled = compile_graph(std::move(name), with_outputs(std::move(graph), outputs), options);
  compiled.initial = std::move(first);
  return compiled;
}

bool skips(const Compiled& compiled, std::string_view pass) { return compiled.pass_options.skipped.contains(pass); }

}  // namespace einrel
