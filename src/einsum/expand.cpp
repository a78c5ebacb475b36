#include "einsum/expand.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "einsum/build/fresh_name.h"
#include "einsum/build/from_graph.h"
#include "einsum/vertex_facts.h"

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
    scalars.scalars.push_back({{scalar.name, {}}, std::nullopt});
    if (scalar.value) scalars.scalars.back().value = build::Number{*scalar.value, std::nullopt};
  }
  return scalars;
}

}  // namespace

build::Program expanded(const CheckedProgram& program) {
  invariant(program.graph.has_value(), "a program is expanded when all extents are known");
  const EinGraph& graph = *program.graph;
  LabelNames labels(graph);
  std::vector<build::Statement> statements;
  if (!program.inputs.empty()) statements.push_back({{}, inputs_of(program, labels)});
  if (!graph.scalars.empty()) statements.push_back({{}, scalars_of(graph)});
  for (const Vertex& vertex : graph.vertices) {
    if (!is_input(vertex)) statements.push_back(build::statement_of(vertex, graph, labels.names_of(labels_of(vertex))));
  }
  build::Outputs outputs;
  for (const VertexId output : graph.outputs) outputs.names.push_back({graph[output].name, {}});
  statements.push_back({{}, std::move(outputs)});
  build::Program result;
  if (const build::Dims dims = labels.dims(); !dims.dims.empty()) result.statements.push_back({{}, dims});
  result.statements.insert(result.statements.end(), statements.begin(), statements.end());
  return result;
}

}  // namespace einrel
