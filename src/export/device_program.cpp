#include "export/device_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/text.h"
#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/graph/vertex_parameters.h"
#include "export/layers.h"
#include "export/python_names.h"
#include "export/step_lines.h"
#include "export/vertex_lines.h"
#include "plan/collectives.h"
#include "report/plan_facts.h"
#include "report/plan_text.h"

namespace einrel {
namespace {

using Lines = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

std::vector<std::int64_t> local_shape(const Shape& bound, const Sharding& sharding, const std::vector<MeshAxis>& mesh) {
  std::vector<std::int64_t> shape;
  for (std::size_t d = 0; d < bound.size(); ++d) {
    shape.push_back(bound[d].value());
    for (const std::size_t axis : sharding[d]) shape.back() /= mesh[axis].size;
  }
  return shape;
}

void add_scalars_read(const Vertex& vertex, std::set<std::string>& names) {
  const EinSum* const einsum = einsum_of(vertex);
  if (einsum == nullptr) return;
  for (const ScalarStep& step : einsum->body.steps) {
    if (const auto* const scalar = std::get_if<ScalarValue>(&step.op)) names.insert(scalar->name);
  }
}

/// The statements of a function, and where each variable is read last.
class Statements {
 public:
  void add(std::string line) { lines_.push_back(std::move(line)); }
  void add(Lines lines) {
    for (std::string& line : lines) lines_.push_back(std::move(line));
  }
  /// By all that was added until now.
  void uses(const std::string& variable) { last_use_[variable] = lines_.size(); }

  /// Where the library keeps what a variable names, variables end with their last use, but for these.
  Lines lines(const ArrayLibrary& library, const std::set<std::string>& kept) const {
    if (!library.keeps_named) return lines_;
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
  Lines lines_;
  std::map<std::string, std::size_t> last_use_;
};

/// A parameter where a function is called, or where its value stands in the function.
struct ParameterText {
  const Variables& scalars;
  std::string operator()(const ScalarValue& scalar) const { return scalars.at(scalar.name); }
  std::string operator()(const Constant& seed) const {
    return std::visit([](auto number) { return fmt::format("{}", number); }, seed.value);
  }
  std::string operator()(const RandomStream& stream) const { return fmt::format("{}", stream.number); }
};

/// Whether a function is given it: scalars, and numbers that differ from time to time.
bool is_argument(const std::vector<VertexParameter>& times) {
  const auto is_another = [&](const VertexParameter& each) { return each != times.front(); };
  return std::holds_alternative<ScalarValue>(times.front()) || std::any_of(times.begin(), times.end(), is_another);
}

std::string parameter_name(const std::vector<VertexParameter>& times) {
  if (std::holds_alternative<Constant>(times.front())) return "seed";
  if (std::holds_alternative<RandomStream>(times.front())) return "stream";
  std::vector<std::string> names;
  for (const VertexParameter& each : times) names.push_back(std::get<ScalarValue>(each).name);
  return without_number(names);
}

/// The vertex with the number of the parameter, of those in the places of its formula, for each stream.
Vertex with_numbered_streams(const Vertex& vertex, const std::vector<std::size_t>& takes) {
  std::vector<VertexParameter> parameters = parameters_of(vertex);
  for (std::size_t p = 0; p < takes.size(); ++p) {
    if (auto* const stream = std::get_if<RandomStream>(&parameters[p]))
      stream->number = static_cast<std::uint32_t>(takes[p]);
  }
  return with_parameters(vertex, parameters);
}

/// What the values and parameters of a layer are called in its function, and tensors in its comments. Numbers that are
/// no arguments stand for themselves.
struct LayerNames {
  Lines variables;
  Lines tensors;
  Lines parameters;
};

class ProgramWriter {
 public:
  ProgramWriter(const DeviceProgram& of, const ArrayLibrary& library, ModuleNeeds& needs)
      : of_(of),
        library_(library),
        needs_(needs),
        mesh_(mesh_of(of.plan.sites)),
        program_(device_steps(of.graph, of.plan)),
        names_(library.names) {}

  ProgramLines write() {
    std::set<std::size_t> kept(program_.next.begin(), program_.next.end());
    for (const VertexId output : of_.outputs) kept.insert(output.index);
    const auto items = with_layers(of_.graph, of_.plan, program_, of_.folding, kept);
    for (const auto& item : items) {
      if (std::holds_alternative<Layer>(item))
        functions_.push_back(names_.unused(of_.costs == nullptr ? "initial_layer" : "layer"));
      if (const auto* const step = std::get_if<DeviceStep>(&item))
        named_.insert(step->reads.begin(), step->reads.end());
    }
    named_.insert(kept.begin(), kept.end());
    name_scalars_and_values();
    for (const auto& item : items) std::visit([&](const auto& each) { write(each); }, item);
    return results();
  }

 private:
  void name_scalars_and_values() {
    const std::set<std::string> read = scalars_read(of_.graph);
    for (const ScalarDeclaration& scalar : of_.graph.scalars) {
      if (read.count(scalar.name) != 0) declare(scalar);
    }
    for (std::size_t value = 0; value < program_.tensors.size(); ++value) {
      const std::string& name = of_.graph.vertices[program_.tensors[value]].name;
      variables_.push_back(names_.unused(is_moved(value) ? name + "_moved" : name));
    }
  }

  bool is_moved(std::size_t value) const { return value >= of_.graph.vertices.size(); }

  void declare(const ScalarDeclaration& scalar) {
    const std::string name = names_.unused(scalar.name);
    scalars_[scalar.name] = name;
    if (scalar.is_iteration)
      return statements_.add(fmt::format("{} = {}", name, of_.costs == nullptr ? "0" : "states[\"iteration\"]"));
    statements_.add(fmt::format("{} = {}[{}]", name, scalar.value ? "SCALARS" : "inputs", python_text(scalar.name)));
  }

  bool is_from_dict(std::size_t value) const { return !is_moved(value) && is_input(of_.graph.vertices[value]); }

  /// An input or a state, in the dict that it comes in.
  std::string in_dict(std::size_t value) const {
    return fmt::format("{}[{}]", is_state(of_.graph, value) ? "states" : "inputs",
                       python_text(of_.graph.vertices[value].name));
  }

  /// Before it is read first.
  void read_from_dict(std::size_t value) {
    if (is_from_dict(value) && read_.insert(value).second)
      statements_.add(fmt::format("{} = {}", variables_[value], in_dict(value)));
  }

  void write(const DeviceStep& step) {
    for (const std::size_t value : step.reads) read_from_dict(value);
    if (step.move) return moves_.push_back(step);
    const Vertex& vertex = of_.graph.vertices[step.vertex];
    statements_.add("");
    statements_.add("# " + printable(formula(vertex, of_.graph)));
    statements_.add(facts_lines({step.vertex}));
    write_moves();
    add_step(statements_, step, variables_,
             compute_lines({of_.graph, vertex, of_.plan.vertices[step.vertex], mesh_, Lines(vertex.inputs.size()),
                            [&](const std::string& name) { return scalars_.at(name); },
                            [](std::uint32_t stream) { return fmt::format("{}", stream); }},
                           step, variables_));
  }

  /// Those that are to be written, under the comment of what needs them.
  void write_moves() {
    for (const DeviceStep& move : std::exchange(moves_, {}))
      add_step(statements_, move, variables_, move_lines(move, variables_));
  }

  static void add_step(Statements& statements, const DeviceStep& step, const Lines& variables, Lines lines) {
    statements.add(std::move(lines));
    for (const std::size_t value : step.reads) statements.uses(variables[value]);
    statements.uses(variables[step.gives]);
  }

  void write(const Layer& layer) {
    const std::string& name = functions_[made_.functions.size()];
    made_.functions.push_back(function_of(layer, name));
    for (const std::vector<std::size_t>& values : layer.values) {
      for (std::size_t a = 0; a < layer.arguments; ++a) {
        if (has_variable(values[a])) read_from_dict(values[a]);
      }
    }
    statements_.add("");
    write_moves();
    for (std::size_t time = 0; time < layer.values.size(); ++time) {
      const std::vector<std::size_t>& values = layer.values[time];
      Lines arguments;
      for (std::size_t a = 0; a < layer.arguments; ++a)
        arguments.push_back(has_variable(values[a]) ? variables_[values[a]] : in_dict(values[a]));
      for (const std::vector<VertexParameter>& each : layer.parameters) {
        if (is_argument(each)) arguments.push_back(std::visit(ParameterText{scalars_}, each[time]));
      }
      add_parameters(arguments);
      Lines results;
      for (const std::size_t result : layer.results) results.push_back(variables_[values[result]]);
      statements_.add(fmt::format("{}{}{}({})", fmt::join(results, ", "), results.empty() ? "" : " = ", name,
                                  fmt::join(arguments, ", ")));
      for (std::size_t a = 0; a < layer.arguments; ++a) {
        if (has_variable(values[a])) statements_.uses(variables_[values[a]]);
      }
      for (const std::string& result : results) statements_.uses(result);
    }
  }

  /// Inputs that only functions read have none.
  bool has_variable(std::size_t value) const { return !is_from_dict(value) || named_.count(value) != 0; }

  void add_parameters(Lines& arguments) const {
    if (!library_.parameters.empty()) arguments.emplace_back(library_.parameters.substr(2));
  }

  /// The tensor that a value of a layer is, or is moved from, by the time.
  std::string tensor_name(const Layer& layer, std::size_t value) const {
    std::vector<std::string> names;
    for (const std::vector<std::size_t>& values : layer.values)
      names.push_back(of_.graph.vertices[program_.tensors[values[value]]].name);
    return without_number(names);
  }

  Lines function_of(const Layer& layer, const std::string& name) {
    PythonNames names(library_.names);
    LayerNames named;
    Lines& variables = named.variables;
    Lines& tensors = named.tensors;
    const auto add_name = [&](std::size_t value, std::string_view moved, std::string_view if_taken) {
      const std::string tensor = tensor_name(layer, value);
      std::string unused = names.unused(fmt::format("{}{}", tensor, moved));
      const bool is_taken =
          std::find(variables.begin(), variables.end(), fmt::format("{}{}", tensor, moved)) != variables.end();
      if (is_taken) unused = names.unused(fmt::format("{}{}{}", tensor, moved, if_taken));
      tensors.push_back(moved.empty() ? unused : tensor);
      variables.push_back(std::move(unused));
    };
    for (std::size_t a = 0; a < layer.arguments; ++a) {
      const bool is_always_moved = std::all_of(layer.values.begin(), layer.values.end(),
                                               [&](const auto& values) { return is_moved(values[a]); });
      add_name(a, is_always_moved ? "_moved" : "", "");
    }
    for (const std::vector<VertexParameter>& each : layer.parameters)
      named.parameters.push_back(is_argument(each) ? names.unused(parameter_name(each))
                                                   : std::visit(ParameterText{scalars_}, each.front()));
    for (const DeviceStep& step : layer.steps) {
      add_name(step.gives, step.move ? "_moved" : "", "_next");
      if (step.move) tensors.back() = tensors[step.reads.front()];
    }
    const Statements statements = statements_of(layer, named);
    Lines parameters(variables.begin(), variables.begin() + static_cast<std::ptrdiff_t>(layer.arguments));
    std::set<std::string> kept(parameters.begin(), parameters.end());
    for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
      if (is_argument(layer.parameters[p])) parameters.push_back(named.parameters[p]);
    }
    add_parameters(parameters);
    Lines results;
    for (const std::size_t result : layer.results) results.push_back(variables[result]);
    kept.insert(results.begin(), results.end());
    Lines lines;
    if (!library_.decorator.empty()) lines.emplace_back(library_.decorator);
    lines.push_back(fmt::format("def {}({}):", name, fmt::join(parameters, ", ")));
    lines.push_back(fmt::format("    \"\"\"What comes {} times; the first time it computes {}.\"\"\"",
                                layer.values.size(), first_and_last(layer)));
    for (const std::string& line : statements.lines(library_, kept)) lines.push_back(line.empty() ? "" : "    " + line);
    if (!results.empty()) lines.push_back(fmt::format("    return {}", fmt::join(results, ", ")));
    return lines;
  }

  Statements statements_of(const Layer& layer, const LayerNames& named) {
    Statements statements;
    std::vector<DeviceStep> moves;
    const auto first =
        std::find_if(layer.steps.begin(), layer.steps.end(), [](const auto& step) { return !step.move; });
    for (std::size_t s = 0; s < layer.steps.size(); ++s) {
      const DeviceStep& step = layer.steps[s];
      if (step.move) {
        moves.push_back(step);
        continue;
      }
      const auto [graph, vertex] = renamed(layer, s, named);
      if (step.vertex != first->vertex) statements.add("");
      statements.add("# " + printable(formula(vertex, graph)));
      statements.add(facts_lines(vertices_of(layer, step)));
      for (const DeviceStep& move : std::exchange(moves, {}))
        add_step(statements, move, named.variables, move_lines(move, named.variables));
      const Vertex computed = with_numbered_streams(vertex, layer.takes[s]);
      add_step(statements, step, named.variables,
               compute_lines({graph, computed, of_.plan.vertices[step.vertex], mesh_, Lines(vertex.inputs.size()),
                              [](const std::string& name) { return name; },
                              [&](std::uint32_t parameter) { return named.parameters[parameter]; }},
                             step, named.variables));
    }
    return statements;
  }

  std::string first_and_last(const Layer& layer) const {
    Lines computed;
    for (const DeviceStep& step : layer.steps) {
      if (!step.move) computed.push_back(printable(of_.graph.vertices[step.vertex].name));
    }
    return computed.size() == 1 ? computed.front() : fmt::format("{} to {}", computed.front(), computed.back());
  }

  /// A vertex with what it reads and takes, under these names.
  std::pair<EinGraph, Vertex> renamed(const Layer& layer, std::size_t s, const LayerNames& named) const {
    const DeviceStep& step = layer.steps[s];
    EinGraph graph;
    Vertex vertex = of_.graph.vertices[step.vertex];
    for (const VertexId input : vertex.inputs) graph.vertices.push_back(of_.graph[input]);
    const std::vector<std::size_t> operands = operands_read(vertex);
    for (std::size_t r = 0; r < operands.size(); ++r) graph.vertices[operands[r]].name = named.tensors[step.reads[r]];
    for (std::size_t i = 0; i < vertex.inputs.size(); ++i) vertex.inputs[i] = VertexId{i};
    vertex.name = named.tensors[step.gives];
    std::vector<VertexParameter> parameters;
    for (const std::size_t p : layer.takes[s]) {
      const VertexParameter& first = layer.parameters[p].front();
      const bool is_named = is_argument(layer.parameters[p]) && !std::holds_alternative<RandomStream>(first);
      parameters.push_back(is_named ? ScalarValue{named.parameters[p]} : first);
    }
    return {std::move(graph), with_parameters(std::move(vertex), parameters)};
  }

  static std::vector<std::size_t> vertices_of(const Layer& layer, const DeviceStep& step) {
    std::vector<std::size_t> vertices;
    for (const std::vector<std::size_t>& values : layer.values) vertices.push_back(values[step.gives]);
    return vertices;
  }

  /// How they are cut, all alike, and what each moves.
  Lines facts_lines(const std::vector<std::size_t>& vertices) const {
    if (of_.costs == nullptr || of_.plan.sites == 1) return {};
    std::set<std::int64_t> bytes;
    for (const std::size_t v : vertices) bytes.insert(of_.costs->vertices[v].bytes());
    const auto text = [](std::int64_t moved) { return moved == 0 ? "nothing" : bytes_text(moved); };
    const std::string moved = bytes.size() == 1
                                  ? fmt::format("{} move{}", text(*bytes.begin()), *bytes.begin() == 0 ? "s" : "")
                                  : fmt::format("{} to {} move", text(*bytes.begin()), text(*bytes.rbegin()));
    const std::size_t first = vertices.front();
    return {fmt::format("# {}; {}", cut_text(cut_of(of_.graph.vertices[first], of_.plan.vertices[first])), moved)};
  }

  Lines compute_lines(DeviceVertex of, const DeviceStep& step, const Lines& variables) {
    const std::vector<std::size_t> operands = operands_read(of.vertex);
    for (std::size_t r = 0; r < operands.size(); ++r) of.operands[operands[r]] = variables[step.reads[r]];
    return vertex_lines(of, variables[step.gives], library_, needs_);
  }

  Lines move_lines(const DeviceStep& step, const Lines& variables) {
    const std::string& from = variables[step.reads.front()];
    const std::string& name = variables[step.gives];
    const Vertex& moved = of_.graph.vertices[step.vertex];
    const auto steps = collectives_between(step.move->have, step.move->need, mesh_);
    invariant(std::holds_alternative<std::vector<Collective>>(steps), "spmd_fault has looked at all that moves");
    const bool as_bits = moved.dtype == DType::bf16 && !library_.to_bits.empty();
    Lines lines;
    if (as_bits) lines.push_back(fmt::format("{} = {}", name, fmt::format(fmt::runtime(library_.to_bits), from)));
    for (std::string& line : step_lines(std::get<std::vector<Collective>>(steps), as_bits ? name : from, name,
                                        local_shape(moved.bound, step.move->have, mesh_), mesh_, library_, needs_))
      lines.push_back(std::move(line));
    if (as_bits) lines.push_back(fmt::format("{} = {}", name, fmt::format(fmt::runtime(library_.from_bits), name)));
    return lines;
  }

  ProgramLines results() {
    std::set<std::string> kept;
    const auto add = [&](const std::string& tensor, std::size_t value) {
      read_from_dict(value);
      kept.insert(variables_[value]);
      made_.results.push_back(fmt::format("{}: {}", python_text(tensor), variables_[value]));
    };
    write_moves();
    for (const VertexId output : of_.outputs) add(of_.graph[output].name, output.index);
    for (std::size_t s = 0; s < program_.next.size(); ++s)
      add(of_.graph[of_.graph.steps.states[s].now].name, program_.next[s]);
    made_.lines = statements_.lines(library_, kept);
    return std::move(made_);
  }

  const DeviceProgram& of_;
  const ArrayLibrary& library_;
  ModuleNeeds& needs_;
  std::vector<MeshAxis> mesh_;
  DeviceSteps program_;
  PythonNames names_;
  Lines functions_;              // names
  std::set<std::size_t> named_;  // values that have a variable, of inputs
  std::set<std::size_t> read_;   // inputs that have it already
  Lines variables_;              // per value
  Variables scalars_;
  std::vector<DeviceStep> moves_;
  Statements statements_;
  ProgramLines made_;
};

}  // namespace

std::set<std::string> scalars_read(const EinGraph& graph) {
  std::set<std::string> names;
  for (const Vertex& vertex : graph.vertices) add_scalars_read(vertex, names);
  return names;
}

ProgramLines program_lines(const DeviceProgram& program, const ArrayLibrary& library, ModuleNeeds& needs) {
  return ProgramWriter(program, library, needs).write();
}

}  // namespace einrel
