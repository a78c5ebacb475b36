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
#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "export/python_names.h"
#include "export/step_lines.h"
#include "export/vertex_lines.h"
#include "plan/collectives.h"
#include "plan/routes.h"
#include "report/plan_facts.h"
#include "report/plan_text.h"

namespace einrel {
namespace {

using Lines = std::vector<std::string>;

void append(Lines& lines, const Lines& more, std::string_view indent = "") {
  for (const std::string& line : more) lines.push_back(line.empty() ? "" : fmt::format("{}{}", indent, line));
}

std::vector<std::int64_t> local_shape(const Shape& bound, const Sharding& sharding, const std::vector<MeshAxis>& mesh) {
  std::vector<std::int64_t> shape;
  for (std::size_t d = 0; d < bound.size(); ++d) {
    shape.push_back(bound[d].value());
    for (const std::size_t axis : sharding[d]) shape.back() /= mesh[axis].size;
  }
  return shape;
}

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

std::set<std::string> scalars_read(const EinGraph& graph) {
  std::set<std::string> names;
  for (const Vertex& vertex : graph.vertices) {
    const EinSum* const einsum = einsum_of(vertex);
    if (einsum == nullptr) continue;
    for (const ScalarStep& step : einsum->body.steps) {
      if (const auto* const scalar = std::get_if<ScalarValue>(&step.op)) names.insert(scalar->name);
    }
  }
  return names;
}

/// The statements that compute a graph by a plan, of one site; without costs, those before the first step.
class DeviceProgram {
 public:
  DeviceProgram(const EinGraph& graph, const Plan& plan, const ArrayLibrary& library, ModuleNeeds& needs,
                const PlanCosts* costs)
      : graph_(graph),
        plan_(plan),
        library_(library),
        needs_(needs),
        costs_(costs),
        mesh_(mesh_of(plan.sites)),
        transfers_(plan.sites),
        routes_(graph, plan, transfers_),
        names_(library.names) {}

  const Lines& run() {
    const std::set<std::string> read = scalars_read(graph_);
    for (const ScalarDeclaration& scalar : graph_.scalars) {
      if (read.count(scalar.name) != 0) declare(scalar);
    }
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      const Vertex& vertex = graph_.vertices[v];
      variables_.push_back(names_.unused(vertex.name));
      if (is_input(vertex)) {
        const bool is_of_step = is_state(graph_, v);
        if (is_of_step && costs_ == nullptr) continue;  // initial values depend on no state
        lines_.push_back(
            fmt::format("{} = {}[{}]", variables_[v], is_of_step ? "states" : "inputs", python_text(vertex.name)));
      } else {
        compute(v);
      }
    }
    return lines_;
  }

  const std::string& variable(std::size_t v) const { return variables_[v]; }

  /// The next value of a state, where that lies.
  std::string next(std::size_t state) {
    const State& of = graph_.steps.states[state];
    if (!of.next) return variables_[of.now.index];
    const std::size_t tensor = graph_.outputs[*of.next].index;
    const std::optional<std::size_t> number = routes_.route_of_state(state);
    return number ? brought(tensor, *number) : variables_[tensor];
  }
  /// The statements. Where the library keeps what a variable names, variables end with their last use, but for these.
  Lines lines(const std::set<std::string>& kept) const {
    if (!library_.keeps_named) return lines_;
    std::map<std::size_t, Lines> ending;
    for (const auto& [name, line] : last_use_) {
      if (kept.count(name) == 0) ending[line].push_back(name);
    }
    Lines lines;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      lines.push_back(lines_[i]);
      if (const auto at = ending.find(i + 1); at != ending.end())
        lines.push_back(fmt::format("del {}", fmt::join(at->second, ", ")));
    }
    return lines;
  }

 private:
  void declare(const ScalarDeclaration& scalar) {
    const std::string name = names_.unused(scalar.name);
    scalars_[scalar.name] = name;
    if (scalar.is_iteration)
      return lines_.push_back(fmt::format("{} = {}", name, costs_ == nullptr ? "0" : "states[\"iteration\"]"));
    lines_.push_back(fmt::format("{} = {}[{}]", name, scalar.value ? "SCALARS" : "inputs", python_text(scalar.name)));
  }

  void compute(std::size_t v) {
    const Vertex& vertex = graph_.vertices[v];
    const VertexPlan& plan = plan_.vertices[v];
    lines_.emplace_back();
    lines_.push_back("# " + printable(formula(vertex, graph_)));
    if (costs_ != nullptr && plan_.sites > 1) {
      const std::int64_t bytes = costs_->vertices[v].bytes();
      lines_.push_back(fmt::format("# {}; {}", cut_text(cut_of(vertex, plan)),
                                   bytes == 0 ? "nothing moves" : bytes_text(bytes) + " move"));
    }
    DeviceVertex of{
        graph_, vertex, plan, mesh_, std::vector<std::string>(vertex.inputs.size()), [&](const std::string& name) {
          return scalars_.at(name);
        }};
    for (const std::size_t operand : operands_read(vertex)) {
      const std::size_t tensor = vertex.inputs[operand].index;
      const std::optional<std::size_t> number = routes_.route_of(v, operand);
      of.operands[operand] = number ? brought(tensor, *number) : variables_[tensor];
    }
    append(lines_, vertex_lines(of, variables_[v], library_, needs_));
    for (const std::size_t operand : operands_read(vertex)) last_use_[of.operands[operand]] = lines_.size();
    last_use_[variables_[v]] = lines_.size();
  }

  /// The variable of a tensor where a route brings it, after those that it is taken from.
  std::string brought(std::size_t tensor, std::size_t number) {
    std::vector<std::size_t> missing;
    for (std::optional<std::size_t> at = number; at && brought_.count({tensor, *at}) == 0;
         at = routes_.route(tensor, *at).source)
      missing.push_back(*at);
    for (; !missing.empty(); missing.pop_back()) bring(tensor, missing.back());
    return brought_.at({tensor, number});
  }

  void bring(std::size_t tensor, std::size_t number) {
    const Vertex& moved = graph_.vertices[tensor];
    const Route& route = routes_.route(tensor, number);
    const std::string from = route.source ? brought_.at({tensor, *route.source}) : variables_[tensor];
    const Sharding have = sharding_of(routes_.source(tensor, number), mesh_);
    const Sharding need = sharding_of(route.need, mesh_);
    std::string& name = brought_[{tensor, number}];
    name = from;
    if (have == need) return;
    const auto steps = collectives_between(have, need, mesh_);
    invariant(std::holds_alternative<std::vector<Collective>>(steps), "spmd_fault has looked at all that moves");
    name = names_.unused(moved.name + "_moved");
    const bool as_bits = moved.dtype == DType::bf16 && !library_.to_bits.empty();
    if (as_bits) lines_.push_back(fmt::format("{} = {}", name, fmt::format(fmt::runtime(library_.to_bits), from)));
    append(lines_, step_lines(std::get<std::vector<Collective>>(steps), as_bits ? name : from, name,
                              local_shape(moved.bound, have, mesh_), mesh_, library_, needs_));
    if (as_bits) lines_.push_back(fmt::format("{} = {}", name, fmt::format(fmt::runtime(library_.from_bits), name)));
    last_use_[from] = last_use_[name] = lines_.size();
  }

  const EinGraph& graph_;
  const Plan& plan_;
  const ArrayLibrary& library_;
  ModuleNeeds& needs_;
  const PlanCosts* costs_;
  std::vector<MeshAxis> mesh_;
  Transfers transfers_;
  Routes routes_;
  PythonNames names_;
  Lines lines_;
  std::vector<std::string> variables_;
  std::map<std::string, std::string> scalars_;
  std::map<std::string, std::size_t> last_use_;  ///< of what is computed or brought: how many lines there are then
  std::map<std::pair<std::size_t, std::size_t>, std::string> brought_;
};

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
    const Lines program = program_lines();
    const Lines initial = initial_lines();
    std::string text = head() + tables();
    text += library_.helpers(needs_);
    text += library_.frame;
    text += fmt::format(
        "\n\ndef _program(inputs, states{}):\n    \"\"\"One step, of the parts that one device has.\"\"\"\n{}\n",
        library_.parameters, fmt::join(program, "\n"));
    text += fmt::format("\n\ndef _initial(inputs{}):\n    \"\"\"The states before the first step, whole.\"\"\"\n{}\n",
                        library_.parameters, fmt::join(initial, "\n"));
    text += library_.main;
    return text;
  }

 private:
  std::vector<std::int64_t> mesh_sizes() const {
    std::vector<std::int64_t> sizes;
    for (const MeshAxis& axis : mesh_) sizes.push_back(axis.size);
    return sizes.empty() ? std::vector<std::int64_t>{1} : sizes;
  }

  Lines program_lines() {
    DeviceProgram body(graph_, report_.plan, library_, needs_, &report_.costs);
    body.run();
    Results results;
    for (const VertexId output : outputs()) results.add(graph_[output].name, body.variable(output.index));
    add_states(graph_, body, results);
    if (counts_steps()) results.items.emplace_back("\"iteration\": states[\"iteration\"] + 1");
    return function_lines(body.lines(results.variables), results);
  }

  Lines initial_lines() {
    Results results;
    Lines lines;
    if (compiled_.initial) {
      const EinGraph& graph = compiled_.initial->graph;
      const Plan whole = whole_plan(graph);
      DeviceProgram body(graph, whole, library_, needs_, nullptr);
      body.run();
      add_states(graph, body, results);
      lines = body.lines(results.variables);
    }
    if (counts_steps()) results.items.push_back(fmt::format("\"iteration\": {}", number("0", DType::i64)));
    return function_lines(lines, results);
  }

  /// What a function returns.
  struct Results {
    Lines items;
    std::set<std::string> variables;
    void add(std::string_view tensor, const std::string& variable) {
      items.push_back(fmt::format("{}: {}", python_text(tensor), variable));
      variables.insert(variable);
    }
  };

  static void add_states(const EinGraph& graph, DeviceProgram& body, Results& results) {
    for (std::size_t s = 0; s < graph.steps.states.size(); ++s)
      results.add(graph[graph.steps.states[s].now].name, body.next(s));
  }

  static Lines function_lines(const Lines& statements, const Results& results) {
    Lines lines;
    append(lines, statements, "    ");
    lines.push_back(fmt::format("    return {{{}}}", fmt::join(results.items, ", ")));
    return lines;
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
        "# Inputs that the first states are computed of.\nREAD_BY_INITIAL = {}\n"
        "# Bytes that all devices receive: in a step, and of copies of inputs and states before the first.\n"
        "PREDICTED_BYTES = {}\nPREDICTED_BYTES_ONCE = {}\n{}{}",
        mesh_text(), joined(tables.inputs), dictionary(tables.states), dictionary(tables.outputs),
        python_tuple(tables.read_by_initial), report_.costs.bytes, tables.once,
        tables.scalars.empty() ? "" : fmt::format("SCALARS = {}\n", joined(tables.scalars)),
        library_.constants(needs_));
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
