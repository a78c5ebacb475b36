#include "report/program_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "run/plan_file.h"

namespace einrel {
namespace {

using nlohmann::ordered_json;

ordered_json shape_json(const Shape& shape) {
  ordered_json extents = ordered_json::array();
  for (const Extent extent : shape) extents.push_back(extent.value());
  return extents;
}

/// JSON has no numbers that are not finite: they are words.
ordered_json number_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

/// One step of an expression as an object, without its type and its arguments.
class StepJson {
 public:
  explicit StepJson(const std::vector<Label>& labels) : labels_(labels) {}

  ordered_json operator()(const OperandValue& op) const { return {{"operand", op.operand}}; }
  ordered_json operator()(const Constant& op) const {
    if (const auto* const whole = std::get_if<std::int64_t>(&op.value)) return {{"constant", *whole}};
    return {{"constant", number_json(std::get<double>(op.value))}};
  }
  ordered_json operator()(const LabelValue& op) const { return {{"label", labels_[op.label].name}}; }
  ordered_json operator()(const ScalarValue& op) const { return {{"scalar", op.name}}; }
  ordered_json operator()(const ApplyUnary& op) const { return function(name_of(op.function)); }
  ordered_json operator()(const ApplyBinary& op) const { return function(name_of(op.function)); }
  ordered_json operator()(const ApplyWhere&) const { return function("where"); }
  ordered_json operator()(const Convert&) const { return function("convert"); }
  ordered_json operator()(const Round& op) const {
    ordered_json json = function("round");
    json["to"] = name_of(op.to);
    return json;
  }
  ordered_json operator()(const ApplyRandom& op) const {
    ordered_json json = function(name_of(op.function));
    json["stream"] = op.stream;
    return json;
  }
  ordered_json operator()(const CheckRange& op) const {
    ordered_json json = function("check_range");
    json.update({{"extent", op.extent}, {"indexed", op.indexed}});
    return json;
  }

 private:
  static ordered_json function(std::string_view name) { return {{"function", name}}; }

  const std::vector<Label>& labels_;
};

/// The tree, each value after its arguments and the root last: trees of sums of thousands would nest too deep.
ordered_json expression_json(const ScalarExpr& expr, const std::vector<Label>& labels) {
  const std::vector<std::vector<std::size_t>> arguments = arguments_of_steps(expr);
  ordered_json nodes = ordered_json::array();
  for (std::size_t i = 0; i < expr.steps.size(); ++i) {
    ordered_json node = std::visit(StepJson(labels), expr.steps[i].op);
    node["type"] = name_of(expr.steps[i].type);
    if (!arguments[i].empty()) node["arguments"] = arguments[i];
    nodes.push_back(std::move(node));
  }
  return nodes;
}

/// How a vertex is computed of its inputs.
class OperationJson {
 public:
  explicit OperationJson(const Vertex& vertex) : vertex_(vertex), labels_(labels_of(vertex)) {}

  ordered_json operator()(const Input&) const { return nullptr; }
  ordered_json operator()(const EinSum& einsum) const {
    ordered_json operands = ordered_json::array();
    for (const Access& access : einsum.operands) operands.push_back(access_json(access));
    return {{"kind", "einsum"},
            {"output", names(einsum.output)},
            {"reduced", names(einsum.reduced)},
            {"reducer", einsum.reducer ? ordered_json(name_of(*einsum.reducer)) : ordered_json()},
            {"operands", std::move(operands)},
            {"expression", expression_json(einsum.body, labels_)}};
  }
  ordered_json operator()(const View& view) const {
    return {{"kind", "view"}, {"from", groups(view.from)}, {"to", groups(view.to)}};
  }
  ordered_json operator()(const Opaque& opaque) const {
    std::vector<std::size_t> output;
    for (const std::vector<std::size_t>& group : result_groups(vertex_))
      output.insert(output.end(), group.begin(), group.end());
    std::vector<std::size_t> matrix;
    for (std::size_t l = labels_.size() - matrix_labels(opaque.function); l < labels_.size(); ++l) matrix.push_back(l);
    return {{"kind", "linear_algebra"},
            {"function", name_of(OpaqueResult{opaque.function, opaque.output})},
            {"output", names(output)},
            {"operand", names(opaque.operand)},
            {"matrix", names(matrix)}};
  }

 private:
  ordered_json names(const std::vector<std::size_t>& labels) const {
    ordered_json json = ordered_json::array();
    for (const std::size_t label : labels) json.push_back(labels_[label].name);
    return json;
  }
  ordered_json groups(const std::vector<std::vector<std::size_t>>& groups) const {
    ordered_json json = ordered_json::array();
    for (const std::vector<std::size_t>& group : groups) json.push_back(names(group));
    return json;
  }
  ordered_json access_json(const Access& access) const {
    ordered_json indices = ordered_json::array();
    for (const Index& index : access.indices) {
      ordered_json terms = ordered_json::array();
      for (const IndexTerm& term : index.terms)
        terms.push_back({{"coefficient", term.coefficient}, {"label", labels_[term.label].name}});
      indices.push_back({{"offset", index.offset}, {"terms", std::move(terms)}});
    }
    return {{"indices", std::move(indices)}, {"pad", access.pad ? number_json(*access.pad) : ordered_json()}};
  }

  const Vertex& vertex_;
  const std::vector<Label>& labels_;
};

ordered_json vertex_json(const Vertex& vertex, const EinGraph& graph) {
  ordered_json labels = ordered_json::array();
  ordered_json extents = ordered_json::object();
  for (const Label& label : labels_of(vertex)) {
    labels.push_back(label.name);
    extents[label.name] = label.extent.value();
  }
  ordered_json inputs = ordered_json::array();
  for (const VertexId input : vertex.inputs) inputs.push_back(graph[input].name);
  return {{"name", vertex.name},
          {"formula", formula(vertex, graph)},
          {"inputs", std::move(inputs)},
          {"dtype", name_of(vertex.dtype)},
          {"shape", shape_json(vertex.bound)},
          {"labels", std::move(labels)},
          {"extents", std::move(extents)},
          {"operation", std::visit(OperationJson(vertex), vertex.op)}};
}

/// What follows from how a vertex runs.
void leave_open(ordered_json& vertex, double flops) {
  vertex.update({{"parts", ordered_json::object()},
                 {"sites", ordered_json::object()},
                 {"flops", flops},
                 {"kernel", nullptr},
                 {"other_kernels", ordered_json::array()},
                 {"bytes", 0}});
}

ordered_json recomputed_json(const Compiled& compiled) {
  ordered_json list = ordered_json::array();
  for (const auto& [tensor, flops] : compiled.recomputed) list.push_back({{"tensor", tensor}, {"flops", flops}});
  return list;
}

ordered_json contractions_json(const Compiled& compiled) {
  ordered_json list = ordered_json::array();
  for (const OrderedContraction& contraction : compiled.contractions) {
    list.push_back({{"tensor", contraction.tensor},
                    {"factors", contraction.factors},
                    {"optimal", contraction.optimal},
                    {"flops_as_written", contraction.flops_as_written},
                    {"flops_ordered", contraction.flops_ordered},
                    {"steps", contraction.steps}});
  }
  return list;
}

ordered_json scalars_json(const EinGraph& graph) {
  ordered_json list = ordered_json::array();
  for (const ScalarDeclaration& scalar : graph.scalars) {
    list.push_back({{"name", scalar.name},
                    {"default", scalar.value ? number_json(*scalar.value) : ordered_json()},
                    {"integer", scalar.integer_type ? ordered_json(name_of(*scalar.integer_type)) : ordered_json()},
                    {"counts_steps", scalar.is_iteration}});
  }
  return list;
}

/// By state, the tensor that is its value in the next step, or before the first one; null where it never changes.
ordered_json states_json(const EinGraph& graph) {
  ordered_json states = ordered_json::object();
  for (const State& state : graph.steps.states)
    states[graph[state.now].name] = state.next ? ordered_json(graph[graph.outputs[*state.next]].name) : ordered_json();
  return states;
}

/// The inputs and vertices of a graph.
struct TensorsJson {
  ordered_json::object_t inputs;  ///< put at its end, since looking for a name takes long
  ordered_json vertices = ordered_json::array();
};

TensorsJson tensors_json(const EinGraph& graph) {
  TensorsJson json;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (!is_input(vertex)) {
      json.vertices.push_back(vertex_json(vertex, graph));
      continue;
    }
    json.inputs.push_back({vertex.name, tensor_json(vertex.bound, vertex.dtype)});
    if (is_state(graph, v)) json.inputs.back().second["state"] = true;
    if (graph.complex.contains(vertex.name)) json.inputs.back().second["complex"] = true;
  }
  return json;
}

/// The program that gives states their values before the first step; null where there are none.
ordered_json initial_json(const Compiled& compiled) {
  if (!compiled.initial) return nullptr;
  const EinGraph& graph = compiled.initial->graph;
  TensorsJson tensors = tensors_json(graph);
  return {
      {"inputs", std::move(tensors.inputs)}, {"vertices", std::move(tensors.vertices)}, {"states", states_json(graph)}};
}

}  // namespace

ordered_json tensor_json(const Shape& bound, DType dtype) {
  return {{"shape", shape_json(bound)}, {"dtype", name_of(dtype)}};
}

ordered_json program_json(const Compiled& compiled) {
  const EinGraph& graph = compiled.graph;
  TensorsJson tensors = tensors_json(graph);
  std::size_t next = 0;
  for (const Vertex& vertex : graph.vertices) {
    if (!is_input(vertex)) leave_open(tensors.vertices[next++], flops(vertex));
  }
  ordered_json::object_t outputs;
  for (const VertexId output : program_outputs(graph)) {
    const Vertex& vertex = graph[output];
    outputs.push_back({vertex.name, tensor_json(vertex.bound, vertex.dtype)});
    if (graph.complex.contains(vertex.name)) outputs.back().second["complex"] = true;
  }
  const std::optional<std::size_t>& until = graph.steps.until;
  return {{"version", report_version},
          {"program", compiled.name},
          {"sites", nullptr},
          {"planner", nullptr},
          {"inputs", std::move(tensors.inputs)},
          {"outputs", std::move(outputs)},
          {"scalars", scalars_json(graph)},
          {"states", states_json(graph)},
          {"until", until ? ordered_json(graph[graph.outputs[*until]].name) : ordered_json()},
          {"initial", initial_json(compiled)},
          {"cost", {{"bound", nullptr}, {"floats", nullptr}, {"bytes", nullptr}, {"seconds", nullptr}}},
          {"peak_memory", {{"predicted", nullptr}, {"measured", nullptr}}},
          {"contractions", contractions_json(compiled)},
          {"recomputed", recomputed_json(compiled)},
          {"tasks", nullptr},
          {"vertices", std::move(tensors.vertices)}};
}

}  // namespace einrel
