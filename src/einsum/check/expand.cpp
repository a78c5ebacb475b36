#include "einsum/check/expand.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "einsum/front/build/fresh_name.h"
#include "einsum/front/build/from_graph.h"
#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

/// One name for labels of one extent.
class LabelNames {
 public:
  explicit LabelNames(const EinGraph& graph) {
    for (const ScalarDeclaration& scalar : graph.scalars) taken_.insert(scalar.name);
  }

  /// The names of labels that stand in one statement.
  std::vector<std::string> names_of(const std::vector<Label>& labels) {
    std::vector<std::string> names;
    std::set<std::string> here;
    for (const Label& label : labels) {
      names.push_back(build::fresh_name(
          label.name, [&](const std::string& name) { return fits(name, label.extent) && here.insert(name).second; }));
    }
    return names;
  }

  build::Dims dims() const {
    build::Dims dims;
    for (const auto& [name, extent] : extents_) dims.dims.push_back({{name, {}}, extent.value()});
    return dims;
  }

 private:
  bool fits(const std::string& name, Extent extent) {
    return taken_.count(name) == 0 && extents_.insert({name, extent}).first->second == extent;
  }

  std::map<std::string, Extent> extents_;
  std::set<std::string> taken_;
};

build::Inputs inputs_of(const CheckedProgram& program, LabelNames& labels) {
  build::Inputs inputs;
  for (const DeclaredInput& input : program.inputs) {
    std::vector<Label> declared;
    for (std::size_t d = 0; d < input.labels.size(); ++d) declared.push_back({input.labels[d], *input.extents[d]});
    inputs.inputs.push_back({{input.name, {}}, build::names(labels.names_of(declared)), input.dtype});
  }
  return inputs;
}

build::Scalars scalars_of(const EinGraph& graph) {
  build::Scalars scalars;
  for (const ScalarDeclaration& scalar : graph.scalars) {
    if (scalar.is_iteration) continue;
    scalars.scalars.push_back({{scalar.name, {}}, std::nullopt});
    if (scalar.value) scalars.scalars.back().value = build::Number{*scalar.value, std::nullopt};
  }
  return scalars;
}

/// States by the names of their initial and of their next values.
struct StepNames {
  std::map<std::string, std::string> initial;
  std::map<std::string, std::string> next;
  bool has_until = false;
};
StepNames names_of(const EinGraph& graph) {
  StepNames names;
  for (const State& state : graph.steps.states) {
    const std::string& name = graph[state.now].name;
    names.initial[initial_name(name)] = name;
    if (state.next) names.next[next_name(name)] = name;
  }
  names.has_until = graph.steps.until.has_value();
  return names;
}

/// The definition of a tensor that has a statement of its own among those about steps, as that.
build::Statement as_step(build::Statement statement, const std::string& name, const StepNames& names) {
  auto* const definition = std::get_if<build::Definition>(&statement.what);
  if (definition == nullptr) return statement;
  if (const auto state = names.initial.find(name); state != names.initial.end()) {
    definition->name.text = state->second;
    return {statement.span, build::State{std::move(*definition)}};
  }
  if (const auto state = names.next.find(name); state != names.next.end()) {
    definition->name.text = state->second;
    return {statement.span, build::Next{std::move(*definition)}};
  }
  if (names.has_until && name == until_name) return {statement.span, build::Until{std::move(definition->value)}};
  return statement;
}

}  // namespace

build::Program expanded(const CheckedProgram& program) {
  invariant(program.graph.has_value(), "a program is expanded when all extents are known");
  const EinGraph& graph = *program.graph;
  LabelNames labels(graph);
  std::vector<build::Statement> statements;
  if (!program.inputs.empty()) statements.push_back({{}, inputs_of(program, labels)});
  if (const build::Scalars scalars = scalars_of(graph); !scalars.scalars.empty()) statements.push_back({{}, scalars});
  const StepNames names = names_of(graph);
  for (const Vertex& vertex : graph.vertices) {
    if (is_input(vertex)) continue;
    build::Statement statement = build::statement_of(vertex, graph, labels.names_of(labels_of(vertex)));
    statements.push_back(as_step(std::move(statement), vertex.name, names));
  }
  build::Outputs outputs;
  for (const VertexId output : program_outputs(graph)) outputs.names.push_back({graph[output].name, {}});
  statements.push_back({{}, std::move(outputs)});
  build::Program result;
  if (const build::Dims dims = labels.dims(); !dims.dims.empty()) result.statements.push_back({{}, dims});
  result.statements.insert(result.statements.end(), statements.begin(), statements.end());
  return result;
}

}  // namespace einrel
