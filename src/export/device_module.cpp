#include "export/device_module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "export/device_program.h"
#include "export/python_names.h"
#include "plan/collectives.h"
#include "plan/routes.h"
#include "report/fold.h"
#include "report/plan_text.h"

namespace einrel {
namespace {

using Lines = std::vector<std::string>;

/// Within the quotes of a docstring.
std::string docstring_text(std::string_view text) {
  const std::string quoted = python_text(text);
  return quoted.substr(1, quoted.size() - 2);
}

std::string shape_text(const Shape& bound) {
  std::vector<std::string> extents;
  for (const Extent extent : bound) extents.push_back(fmt::format("{}", extent.value()));
  return python_tuple(extents);
}

/// What nothing is emitted for, each with its reason.
std::vector<std::string> refusals(const EinGraph& graph) {
  std::vector<std::string> reasons;
  if (!graph.complex.empty())
    reasons.push_back(
        fmt::format("{} is complex: the exported program has no complex numbers", *graph.complex.begin()));
  std::set<std::string> outputs;
  for (const VertexId output : program_outputs(graph)) outputs.insert(graph[output].name);
  for (const State& state : graph.steps.states) {
    const std::string& name = graph[state.now].name;
    if (outputs.count(name) != 0)
      reasons.push_back(fmt::format("the state {0} is an output, too: a step returns its next value as {0}", name));
  }
  for (const Vertex& vertex : graph.vertices) {
    if (computes_nothing(vertex)) reasons.push_back(fmt::format("{} has a label without positions", vertex.name));
  }
  return reasons;
}

class DeviceModule {
 public:
  DeviceModule(const Compiled& compiled, const PlanReport& report, const ArrayLibrary& library)
      : compiled_(compiled),
        graph_(compiled.graph),
        report_(report),
        library_(library),
        mesh_(mesh_of(report.plan.sites)) {}

  std::string text() {
    const Lines reasons = refusals(graph_);
    if (!reasons.empty()) {
      throw UserError(fmt::format("{} cannot be exported to {}: {}\n  help: see docs/export.md for what can",
                                  printable(compiled_.name), library_.name, fmt::join(reasons, "\n  ")));
    }
    const std::string program = program_text();
    const std::string initial = initial_text();
    std::string text = head() + tables();
    text += library_.helpers(needs_);
    text += library_.frame;
    text += program + initial;
    text += library_.main;
    return text;
  }

 private:
  std::vector<std::int64_t> mesh_sizes() const {
    std::vector<std::int64_t> sizes;
    for (const MeshAxis& axis : mesh_) sizes.push_back(axis.size);
    return sizes.empty() ? std::vector<std::int64_t>{1} : sizes;
  }

  std::string program_text() {
    ProgramLines program =
        program_lines({graph_, report_.plan, &report_.costs, fold(graph_, {report_}), outputs()}, library_, needs_);
    if (counts_steps()) program.results.emplace_back("\"iteration\": states[\"iteration\"] + 1");
    return function_text("_program(inputs, states", "One step, of the parts that one device has.", program);
  }

  std::string initial_text() {
    ProgramLines program;
    if (compiled_.initial) {
      const EinGraph& graph = compiled_.initial->graph;
      program = program_lines({graph, whole_plan(graph), nullptr, fold(graph, {}), {}}, library_, needs_);
    }
    if (counts_steps()) program.results.push_back(fmt::format("\"iteration\": {}", number("0", DType::i64)));
    return function_text("_initial(inputs", "The states before the first step, whole.", program);
  }

  /// After those that it calls.
  std::string function_text(std::string_view head, std::string_view about, const ProgramLines& program) const {
    std::string text;
    for (const Lines& function : program.functions) text += fmt::format("\n\n{}\n", fmt::join(function, "\n"));
    text += fmt::format("\n\ndef {}{}):\n    \"\"\"{}\"\"\"\n", head, library_.parameters, about);
    for (const std::string& line : program.lines) text += line.empty() ? "\n" : fmt::format("    {}\n", line);
    return text + fmt::format("    return {{{}}}\n", fmt::join(program.results, ", "));
  }

  std::string number(std::string_view text, DType type) const {
    return fmt::format(fmt::runtime(library_.number), fmt::arg("x", text),
                       fmt::arg("type", python_type(library_, type)));
  }

  bool counts_steps() const {
    return std::any_of(graph_.scalars.begin(), graph_.scalars.end(),
                       [](const ScalarDeclaration& scalar) { return scalar.is_iteration; });
  }

  /// The program's, and the condition that ends its steps.
  std::vector<VertexId> outputs() const {
    std::vector<VertexId> outputs = program_outputs(graph_);
    if (!graph_.steps.until) return outputs;
    const VertexId until = graph_.outputs[*graph_.steps.until];
    if (std::find(outputs.begin(), outputs.end(), until) == outputs.end()) outputs.push_back(until);
    return outputs;
  }

  std::string head() const {
    return fmt::format(
        "\"\"\"{}, planned by {} for {}: the program of each, for {}.\n\n"
        "{} predicted for a step, in which the devices receive {} from each other. Written by einrel.\n\"\"\"\n{}",
        docstring_text(printable(compiled_.name)), docstring_text(printable(report_.plan.planner)),
        counted(static_cast<std::size_t>(report_.plan.sites), "device"), library_.name,
        seconds_text(report_.costs.seconds), bytes_text(report_.costs.bytes), library_.imports);
  }

  /// A row of INPUTS, STATES or OUTPUTS.
  std::string entry(std::string_view name, const Shape& bound, DType type, const Sharding& sharding) const {
    return fmt::format("    {}: ({}, {}, {}),\n", python_text(name), shape_text(bound), python_type(library_, type),
                       library_.cut(sharding));
  }
  std::string entry(std::size_t v) {
    const Vertex& vertex = graph_.vertices[v];
    const Sharding sharding = sharding_of(result_layout(vertex, report_.plan.vertices[v]), mesh_);
    for (const std::vector<std::size_t>& axes : sharding) {
      if (!axes.empty()) needs_.lines.insert(axes);
    }
    return entry(vertex.name, vertex.bound, vertex.dtype, sharding);
  }

  struct Tables {
    std::map<std::string, std::string> inputs;  ///< by name
    std::string states;
    std::string outputs;
    std::map<std::string, std::string> scalars;
    Lines read_by_initial;
    std::int64_t once = 0;  ///< bytes of copies
  };

  void add_tensors(Tables& tables) {
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      const Vertex& vertex = graph_.vertices[v];
      if (!is_input(vertex)) continue;
      if (is_state(graph_, v)) {
        tables.states += entry(v);
      } else {
        tables.inputs[vertex.name] = entry(v);
      }
      tables.once += (copies_of(report_.plan.vertices[v]) - 1) * static_cast<std::int64_t>(bytes_of(vertex));
    }
    if (counts_steps()) tables.states += entry("iteration", {}, DType::i64, {});
    for (const VertexId output : outputs()) tables.outputs += entry(output.index);
  }

  void add_scalars(const EinGraph& graph, Tables& tables) const {
    for (const ScalarDeclaration& scalar : graph.scalars) {
      if (scalar.value) {
        tables.scalars[scalar.name] =
            fmt::format("    {}: {},\n", python_text(scalar.name), python_number(*scalar.value, library_.module));
      } else if (!scalar.is_iteration) {
        tables.inputs[scalar.name] = entry(scalar.name, {}, scalar.integer_type.value_or(DType::f64), {});
      }
    }
  }

  /// Of inputs that only the first states are computed of, every device has a copy.
  void add_initial(const EinGraph& graph, Tables& tables) const {
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      const Vertex& vertex = graph.vertices[v];
      if (!is_input(vertex) || is_state(graph, v)) continue;
      tables.read_by_initial.push_back(python_text(vertex.name));
      const std::string whole = entry(vertex.name, vertex.bound, vertex.dtype, Sharding(vertex.bound.size()));
      if (tables.inputs.emplace(vertex.name, whole).second)
        tables.once += (report_.plan.sites - 1) * static_cast<std::int64_t>(bytes_of(vertex));
    }
    const std::set<std::string> read = scalars_read(graph);
    for (const ScalarDeclaration& scalar : graph.scalars) {
      if (!scalar.value && !scalar.is_iteration && read.count(scalar.name) != 0)
        tables.read_by_initial.push_back(python_text(scalar.name));
    }
    add_scalars(graph, tables);
  }

  std::string tables() {
    Tables tables;
    add_tensors(tables);
    add_scalars(graph_, tables);
    if (compiled_.initial) add_initial(compiled_.initial->graph, tables);
    const auto joined = [](const std::map<std::string, std::string>& entries) {
      std::string text;
      for (const auto& [name, entry] : entries) text += entry;
      return dictionary(text);
    };
    return fmt::format(
        "\nMESH = {}\n# Shape, type and which axes of the mesh cut each dimension.\n"
        "INPUTS = {}\nSTATES = {}\nOUTPUTS = {}\n"
        "# Inputs that the first states are computed of, and inputs that nothing reads.\n"
        "READ_BY_INITIAL = {}\nUNREAD = {}\n"
        "# Bytes that all devices receive: in a step, and of copies of inputs and states before the first.\n"
        "PREDICTED_BYTES = {}\nPREDICTED_BYTES_ONCE = {}\n{}{}",
        mesh_text(), joined(tables.inputs), dictionary(tables.states), dictionary(tables.outputs),
        python_tuple(tables.read_by_initial), python_tuple(unread(tables)), report_.costs.bytes, tables.once,
        tables.scalars.empty() ? "" : fmt::format("SCALARS = {}\n", joined(tables.scalars)),
        library_.constants(needs_));
  }

  /// Inputs that neither a step nor the first states need.
  Lines unread(const Tables& tables) const {
    Lines names;
    for (const std::string& name : compiled_.unread) {
      if (tables.inputs.count(name) == 0) names.push_back(python_text(name));
    }
    return names;
  }

  static std::string dictionary(const std::string& entries) {
    return entries.empty() ? "{}" : fmt::format("{{\n{}}}", entries);
  }

  std::string mesh_text() const {
    std::vector<std::string> axes;
    const std::vector<std::int64_t> sizes = mesh_sizes();
    for (std::size_t a = 0; a < sizes.size(); ++a) axes.push_back(fmt::format("\"m{}\": {}", a, sizes[a]));
    return fmt::format("{{{}}}", fmt::join(axes, ", "));
  }

  const Compiled& compiled_;
  const EinGraph& graph_;
  const PlanReport& report_;
  const ArrayLibrary& library_;
  std::vector<MeshAxis> mesh_;
  ModuleNeeds needs_;
};

}  // namespace

std::string module_source(const Compiled& compiled, const PlanReport& report, const ArrayLibrary& library) {
  if (const std::string fault = spmd_fault(compiled.graph, report.plan); !fault.empty())
    throw UserError(fmt::format("{}\n  help: plan with --spmd", fault));
  return DeviceModule(compiled, report, library).text();
}

}  // namespace einrel
